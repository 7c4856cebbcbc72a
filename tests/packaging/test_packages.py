import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]


def test_every_package_is_listed():
    mapping = SETUPTOOLS["package-dir"]
    found = {
        ".".join((name, *init.parent.relative_to(ROOT / folder).parts))
        for name, folder in mapping.items()
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert SETUPTOOLS["packages"] == sorted(found)


def test_every_module_is_in_a_package():
    for module in (ROOT / "src").rglob("*.py"):
        assert (module.parent / "__init__.py").exists(), module


def test_no_file_is_too_long():
    sizes = {p: len(p.read_text().splitlines()) for p in (ROOT / "src").rglob("*.py")}
    assert max(sizes.values()) <= 350, max(sizes, key=sizes.__getitem__)
    assert sorted(sizes.values())[len(sizes) // 2] < 120


def test_hydra_stays_below_1_4_and_python_below_3_14():
    assert "hydra-core>=1.3.8,<1.4" in PROJECT["project"]["dependencies"]
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.14"


def test_imports_go_one_way():
    order = ["registry", "stages", "pipeline", "cli"]
    for layer, name in enumerate(order):
        later = "|".join(order[layer + 1 :]) or "nothing"
        upward = re.compile(rf"^\s*(from|import) draftmesh\.({later})\b", re.MULTILINE)
        for module in (ROOT / "src" / name).rglob("*.py"):
            assert not upward.search(module.read_text()), module
