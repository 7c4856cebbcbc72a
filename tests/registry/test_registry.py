import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from draftmesh.registry import REGISTRY, Registry, UserError, build, build_config
from draftmesh.registry.builtins import BUILTINS
from draftmesh.registry.entry import Entry
from draftmesh.registry.kinds import KINDS


class Stage:
    """A stage that loads nothing.

    More text.
    """

    @dataclass(frozen=True)
    class Config:
        name: str = "one"
        k: int = 5
        path: str | None = None
        rate: float = 0.5

    def __init__(self, config: Config, *args: object) -> None:
        self.config, self.args = config, args

    def load(self) -> list[int]:
        return []


class Other(Stage):
    pass


class Halfway:
    @dataclass(frozen=True)
    class Config:
        name: str = "half"

    def propose(self) -> None: ...


def registry(*entries: Entry, builtins: dict | None = None) -> Registry:
    return Registry(builtins or {}, lambda: list(entries))


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch):
    def install(name: str, **members: object) -> None:
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)

    return install


def test_decorated_class_is_found_with_its_origin_and_description():
    r = registry()
    assert r.register("data", "one")(Stage) is Stage
    assert r.get("data", "one") is Stage
    assert r.describe("data")[0].description == "A stage that loads nothing"
    assert r.origin("data", "one").startswith(__file__)


def test_listing_imports_nothing_and_get_does(modules):
    r = registry(builtins={"data": {"lazy": ("lazy_stage_module:Stage", "lazily")}})
    assert r.names("data") == ["lazy"]
    assert "lazy_stage_module" not in sys.modules
    modules("lazy_stage_module", Stage=Stage)
    assert r.get("data", "lazy") is Stage


def test_same_class_again_is_no_change_and_upgrades_a_placeholder():
    r = registry(builtins={"data": {"one": (f"{__name__}:Stage", "first")}})
    r.register("data", "one")(Stage)
    r.register("data", "one")(Stage)
    assert r.get("data", "one") is Stage
    assert r.origin("data", "one") == "built-in"


def test_package_may_reexport_its_class(modules):
    modules("acme_pkg", Stage=Stage)
    point = EntryPoint("one", "acme_pkg:Stage", "draftmesh.data")
    r = registry(Entry("data", "one", point, "acme 1"))
    deep = type("Stage", (Stage,), {"__module__": "acme_pkg.deep", "__qualname__": "Stage"})
    r.register("data", "one")(deep)
    assert r.get("data", "one") is deep


def test_second_class_under_a_name_names_both():
    r = registry()
    r.register("data", "one")(Stage)
    with pytest.raises(UserError, match=r"registered twice.*:Stage\).*:Other\)"):
        r.register("data", "one")(Other)
    assert r.get("data", "one") is Stage


def test_two_distributions_with_one_name_spoil_only_that_name():
    def entry(name: str, target: str, dist: str) -> Entry:
        return Entry("data", name, EntryPoint(name, target, "draftmesh.data"), dist)

    r = registry(
        entry("one", f"{__name__}:Stage", "acme 1.0"),
        entry("one", f"{__name__}:Other", "bolt 2.1"),
        entry("two", f"{__name__}:Other", "bolt 2.1"),
        builtins={},
    )
    with pytest.raises(UserError, match=r"acme 1\.0.*bolt 2\.1.*DRAFTMESH_PLUGINS"):
        r.get("data", "one")
    assert r.names("data") == ["one", "two"]
    assert r.get("data", "two") is Other


def test_broken_plugin_shows_why_and_leaves_the_others():
    point = EntryPoint("bad", "no_such_module_anywhere:X", "draftmesh.data")
    r = registry(Entry("data", "bad", point, "acme-draft 0.1"))
    r.register("data", "one")(Stage)
    assert r.names("data") == ["bad", "one"]
    assert r.get("data", "one") is Stage
    with pytest.raises(
        UserError, match=r"'bad' from acme-draft 0\.1 failed to import: Module"
    ) as e:
        r.get("data", "bad")
    assert isinstance(e.value.__cause__, ModuleNotFoundError)


def test_contract_is_checked_with_the_missing_methods_named():
    r = registry()
    r.register("draft", "half")(Halfway)
    with pytest.raises(UserError, match="lacks start, observe, drop, idle"):
        r.get("draft", "half")
    r.register("data", "plain")(type("Plain", (), {"load": len}))
    with pytest.raises(UserError, match="no nested dataclass Config"):
        r.get("data", "plain")


@pytest.mark.parametrize(
    ("kind", "methods", "lacks"),
    [
        ("ffn", ("apply",), "upcycles"),
        ("dispatch", ("dispatch", "combine"), "predicted_bytes"),
        ("compute", ("__call__",), "supports"),
    ],
)
def test_experts_stages_are_asked_for_all_that_is_called(kind, methods, lacks):
    r = registry()
    members = dict.fromkeys(methods, lambda self: None)
    r.register(kind, "part")(type("Part", (), {"Config": Stage.Config, **members}))
    with pytest.raises(UserError, match=f"lacks {lacks}$"):
        r.get(kind, "part")


def test_unknown_name_and_kind_suggest():
    r = registry(Entry("draft", "lookahead", "a:B", "acme 0.1"))
    with pytest.raises(UserError, match=r"draft=lookahaed: unknown; did you mean lookahead\?") as e:
        r.get("draft", "lookahaed")
    assert "lookahead (acme 0.1)" in str(e.value)
    with pytest.raises(UserError, match=r"parallel\.dispatch=zzz: unknown; available: none"):
        r.get("dispatch", "zzz")
    with pytest.raises(UserError, match=r"no kind 'drafts'; did you mean draft\?"):
        r.names("drafts")


def test_isolated_restores():
    r = registry()
    with r.isolated():
        r.register("data", "one")(Stage)
        assert r.names("data") == ["one"]
    assert r.names("data") == []


def test_config_is_frozen_typed_and_complete():
    config = build_config(Stage, {"name": "one", "k": 3})
    assert config == Stage.Config("one", 3, None, 0.5)
    with pytest.raises(AttributeError):
        config.k = 4


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"rat": 1}, r"data\.rat: no such option; did you mean data\.rate\?; options: name, k"),
        ({"k": "five"}, r"data\.k: Value 'five' of type 'str' could not be converted to Integer"),
        ({"k": None}, r"data\.k: "),
        ({"path": ["a"]}, r"data\.path: "),
    ],
)
def test_bad_config_names_the_option_in_one_line(node, message):
    with REGISTRY.isolated():
        REGISTRY.register("data", "one")(Stage)
        with pytest.raises(UserError, match=message) as e:
            build_config(Stage, node)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("text", ["${x}", "a\\\\${x} $", "\\\\", "{[}]"])
def test_text_is_taken_literally(text):
    assert build_config(Stage, {"path": text}).path == text


def test_required_field():
    @dataclass(frozen=True)
    class Config:
        path: str

    cls = type("Needy", (Stage,), {"Config": Config})
    with pytest.raises(UserError, match=r"Needy\.path: a value is required"):
        build_config(cls, {})


def test_build_passes_config_first():
    with REGISTRY.isolated():
        REGISTRY.register("data", "one")(Stage)
        stage = build("data", {"name": "one", "k": 2}, "context")
    assert (stage.config.k, stage.args) == (2, ("context",))
    with pytest.raises(UserError, match=r"data\.name"):
        build("data", {})


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, table in BUILTINS.items() for name in table]
)
def test_every_builtin_imports_and_says_what_it_is(kind, name):
    cls = REGISTRY.get(kind, name)
    assert cls.Config().name == name
    assert REGISTRY.origin(kind, name) == "built-in"
    address, description = BUILTINS[kind][name]
    assert f"{cls.__module__}:{cls.__qualname__}" == address
    assert description
    assert "\n" not in description


def test_every_kind_has_a_table():
    assert list(BUILTINS) == list(KINDS)
