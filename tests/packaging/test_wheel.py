"""The wheel of DraftMesh itself: complete, and runnable from any folder without a checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "conf", "heads", "pyproject.toml", "README.md", "LICENSE")
NOT_SHIPPED = shutil.ignore_patterns("__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    work = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, work / "source" / name, ignore=NOT_SHIPPED)
        else:
            shutil.copy(ROOT / name, work / "source")
    pip(
        "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(work), str(work / "source")
    )
    (built,) = work.glob("*.whl")
    return built


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def test_wheel_holds_every_module_config_head_and_prompt(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"draftmesh/{'' if folder == 'src' else folder + '/'}{path.relative_to(ROOT / folder)}"
        for folder in ("src", "conf", "heads")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= held, sorted(wanted - held)
    assert not [name for name in held if not name.startswith("draftmesh")]


def test_wheel_runs_from_any_folder(wheel, tmp_path):
    target = tmp_path / "site"
    pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    code = "from draftmesh.cli import main; import draftmesh; print(draftmesh.__file__); main()"

    def run(*arguments: str) -> str:
        result = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(target)},
            check=True,
        )
        first, _, rest = result.stdout.partition("\n")
        assert first.startswith(str(target))
        return rest

    assert "ngram" in run("--help")
    assert "min_match: 2" in run("--cfg", "job", "draft=ngram")
    assert "prompt lookup" in run("task=list")
