import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from draftmesh.registry import KINDS, REGISTRY, Entry, UserError, names
from draftmesh.stages.task.list import ListPlugins, plugin_table


def shown(kinds: list[str]) -> str:
    out = io.StringIO()
    Console(file=out, width=160).print(plugin_table(kinds))
    return out.getvalue()


def test_every_plugin_is_listed_with_origin_and_description():
    text = shown(list(KINDS))
    for kind in KINDS:
        assert (
            f" {'parallel.' if kind in ('dispatch', 'compute', 'placement') else ''}{kind}=" in text
        )
        for name in names(kind):
            assert f" {name} " in text
    assert "prompt lookup" in text


def test_third_parties_and_conflicts_are_named():
    with REGISTRY.isolated():
        REGISTRY.add(Entry("draft", "mine", "a:B", "acme 0.1", "my drafter"))
        REGISTRY.add(Entry("draft", "ngram", "a:C", "acme 0.1", "another"))
        text = shown(["draft"])
    assert "acme 0.1" in text
    assert "my drafter" in text
    assert "built-in, acme 0.1" in text
    assert "claimed by several" in text


def test_one_kind(capsys):
    ListPlugins(ListPlugins.Config(kind="draft")).show({}, Path())
    text = capsys.readouterr().out
    assert "draft=" in text
    assert "model=" not in text
    with pytest.raises(UserError, match=r"task\.kind=drafts: no such kind; did you mean draft\?"):
        ListPlugins(ListPlugins.Config(kind="drafts")).show({}, Path())


def test_command_imports_no_torch(tmp_path):
    code = (
        "import sys\n"
        "sys.argv = ['run.py', 'task=list']\n"
        "from draftmesh.cli import main\n"
        "try: main()\n"
        "finally: print({'torch', 'mlflow', 'transformers'} & set(sys.modules), file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (result.returncode, result.stderr) == (0, "set()\n")
    assert "prompt lookup" in result.stdout
