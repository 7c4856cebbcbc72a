import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAME = "draftmesh-lookahead"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example's wheel is installed."""
    work = tmp_path_factory.mktemp("lookahead")
    source = shutil.copytree(ROOT / "examples" / NAME, work / NAME)
    pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(work), str(source))
    (wheel,) = work.glob("*.whl")
    target = work / "site"
    pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    return target


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


@pytest.fixture
def run(site, tmp_path):
    """`python run.py` in an empty folder, with the wheel on the path."""

    def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1", **variables}
        return subprocess.run(
            [sys.executable, str(ROOT / "run.py"), *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            check=False,
        )

    return start
