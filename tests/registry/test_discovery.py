import pytest

from draftmesh.registry import Registry, UserError, discovery
from draftmesh.registry.discovery import SWITCH, config_packages, discover
from draftmesh.registry.entry import Entry


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put distributions on sys.path: name -> text of entry_points.txt."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)

    def add(name: str, points: str, version: str = "1.0") -> None:
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        metadata = (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: About {name}\n"
        )
        (folder / "METADATA").write_text(metadata)
        (folder / "entry_points.txt").write_text(points)
        discovery._points.cache_clear()

    discovery._points.cache_clear()
    yield add
    discovery._points.cache_clear()


DRAFT = "[draftmesh.draft]\n{name} = {module}:Draft\n"


def test_entries_know_their_distribution(install):
    install("acme", DRAFT.format(name="fast", module="acme") + "[console_scripts]\nx = y:z\n")
    (entry,) = discover()
    assert (entry.kind, entry.name, entry.origin) == ("draft", "fast", "acme 1.0")
    assert entry.description == "About acme"


def test_two_distributions_with_one_name(install):
    install("acme", DRAFT.format(name="fast", module="acme"))
    install("bolt", DRAFT.format(name="fast", module="bolt") + "other = bolt:Other\n")
    registry = Registry({}, discover)
    assert registry.names("draft") == ["fast", "other"]
    with pytest.raises(UserError, match=r"both acme 1\.0 \(acme:Draft\) and bolt 1\.0 \(bolt"):
        registry.get("draft", "fast")


def test_a_builtin_is_not_replaced_silently(install):
    install("acme", DRAFT.format(name="ngram", module="acme"))
    registry = Registry(discover=discover)
    with pytest.raises(UserError, match=r"'ngram' is provided by both built-in .* acme 1\.0"):
        registry.get("draft", "ngram")
    assert registry.get("tracking", "none")


@pytest.mark.parametrize(
    ("switch", "names"), [("none", []), ("bolt", ["b"]), ("Acme, bolt", ["a", "b"])]
)
def test_switch(install, monkeypatch, switch, names):
    install("acme", DRAFT.format(name="a", module="acme"))
    install("bolt", DRAFT.format(name="b", module="bolt"))
    monkeypatch.setenv(SWITCH, switch)
    discovery._points.cache_clear()
    assert [entry.name for entry in discover()] == names


def test_config_packages(install):
    install("acme", "[draftmesh.configs]\nacme = acme.conf\n", "2.0")
    assert config_packages() == [("acme.conf", "acme 2.0")]


def test_kinds_that_do_not_exist_are_ignored(install):
    install("acme", "[draftmesh.nonsense]\na = acme:A\n")
    assert discover() == []


def test_entry_points_of_the_backport_are_understood(install):
    class Point:
        """As importlib_metadata's: not an importlib.metadata.EntryPoint."""

        value = "acme : Draft"

    registry = Registry(discover=lambda: [Entry("draft", "fast", Point(), "acme 1.0")])
    assert registry.describe("draft")[-1].address == "acme:Draft"
