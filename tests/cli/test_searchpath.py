import pytest

from draftmesh.cli import offers, searchpath


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Config packages of pretended plugins: {package: {file: text}}."""

    def provide(files: dict[str, dict[str, str]]) -> None:
        for package, texts in files.items():
            for name, text in {"__init__.py": "", **texts}.items():
                path = tmp_path / package / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        found = [(package, f"{package} 1.0") for package in (*files, "local_absent")]
        for module in (offers, searchpath):
            monkeypatch.setattr(module, "config_packages", lambda: found)

    monkeypatch.syspath_prepend(str(tmp_path))
    return provide


def test_plugins_add_options_and_a_broken_one_does_no_harm(call, pipeline, packages):
    packages({"local_acme": {"draft/quick.yaml": "name: ngram\nk: 9\n"}})
    result = call("draft=quick")
    assert (result.code, result.err) == (0, "")
    assert pipeline.calls[0][0]["draft"] == {"name": "ngram", "k": 9}


def test_plugins_replace_no_option_of_ours_and_it_is_said(call, pipeline, packages):
    packages(
        {
            "local_acme": {"draft/ngram.yaml": "name: ngram\nk: 99\n"},
            "local_bolt": {"draft/quick.yaml": "name: ngram\n"},
            "local_coil": {"draft/quick.yaml": "name: none\n"},
        }
    )
    result = call("draft=ngram")
    assert pipeline.calls[0][0]["draft"]["k"] == 5
    assert result.code == 0
    lines = result.err.splitlines()
    assert "draft/ngram.yaml of local_acme 1.0 is hidden by draftmesh's" in lines[0]
    assert "draft/quick.yaml of local_coil 1.0 is hidden by local_bolt 1.0's" in lines[1]
    assert len(lines) == 2
