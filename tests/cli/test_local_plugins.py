import re
from pathlib import Path

import pytest

from draftmesh.registry import REGISTRY

README = Path(__file__).parents[2] / "README.md"

MODULE = """
from dataclasses import dataclass
from draftmesh.registry import register

@register("draft", "mine")
class Mine:
    \"\"\"A drafter of my own.\"\"\"

    @dataclass(frozen=True)
    class Config:
        name: str = "mine"
        k: int = 4
        widths: tuple[int, ...] = (2, 1)

    def start(self, rows): ...
    def observe(self, step): ...
    def propose(self, budget): ...
    def drop(self, keep): ...
    def idle(self): ...
"""


@pytest.fixture(autouse=True)
def isolated():
    with REGISTRY.isolated():
        yield


def test_module_beside_the_command_needs_no_yaml(call, pipeline, tmp_path):
    (tmp_path / "local_mine.py").write_text(MODULE)
    result = call("plugins=[local_mine]", "draft=mine", "draft.k=2")
    assert (result.code, result.err) == (0, "")
    assert pipeline.calls[0][0]["draft"] == {"name": "mine", "k": 2, "widths": [2, 1]}
    assert "local_mine.py" in REGISTRY.origin("draft", "mine")
    assert "did you mean draft.k?" in call("plugins=[local_mine]", "draft=mine", "draft.kk=2").err


def test_the_readmes_example_keeps_the_contract(call, pipeline, tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "local_readme.py").write_text(example)
    result = call("plugins=[local_readme]", "draft=mine")
    assert (result.code, result.err) == (0, "")
    assert pipeline.calls[0][0]["draft"] == {"name": "mine"}
    assert REGISTRY.get("draft", "mine").__name__ == "MyDraft"


@pytest.mark.parametrize("body", ["", "class Config: ...", "Config = dataclass(type('C', (), {}))"])
def test_a_class_without_a_config_is_one_line(call, pipeline, tmp_path, body):
    head = MODULE.partition('    """')[0]
    (tmp_path / "local_bare.py").write_text(f"{head}    pass\n    {body}\n")
    result = call("plugins=[local_bare]", "draft=mine")
    assert result.code == 2
    assert result.err.startswith(
        "draftmesh: plugins: draft 'mine' (local_bare:Mine) needs a frozen"
    )
    assert len(result.err.splitlines()) == 1
    assert not pipeline.calls


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("plugins=[local_absent]", "plugins: no module 'local_absent' in "),
        ("plugins=[local_bad]", "plugins: 'local_bad' failed to import: ZeroDivisionError"),
        ("plugins=[local_bad.py]", "write plugins=[local_bad]"),
        ("plugins=local_bad", "plugins=local_bad: a list is needed: plugins=[local_bad]"),
        ("plugins=[local_twice]", "draft 'ngram' is registered twice: by built-in"),
    ],
)
def test_bad_modules(call, pipeline, tmp_path, argument, message):
    (tmp_path / "local_bad.py").write_text("1 / 0")
    (tmp_path / "local_twice.py").write_text(MODULE.replace('"mine"', '"ngram"'))
    result = call(argument)
    assert result.code == 2
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert not pipeline.calls
