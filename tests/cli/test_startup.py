import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROBE = """
import runpy, sys
try:
    sys.argv = ["run.py", *sys.argv[1:]]
    runpy.run_path({run!r}, run_name="__main__")
finally:
    heavy = sorted({{"torch", "transformers", "mlflow", "numpy"}} & set(sys.modules))
    twice = sorted(m for m in sys.modules if m == "src" or m.startswith("src."))
    print("HEAVY", heavy, "TWICE", twice, file=sys.stderr)
"""


def python(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--cfg", "job"], ["--info", "searchpath"]])
def test_looking_around_imports_nothing_heavy(arguments, tmp_path):
    result = python("-c", PROBE.format(run=str(ROOT / "run.py")), *arguments, cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr.strip() == "HEAVY [] TWICE []"
    assert not list(tmp_path.iterdir())


def test_help_shows_groups_plugins_and_examples():
    text = python("run.py", "--help").stdout
    words = " ".join(text.split())
    for line in ("sampling greedy, ", "parallel ep2, ", "dispatch local, all_to_all", "eagle_tree"):
        assert line in words
    assert sum(line.startswith("  python run.py") for line in text.splitlines()) >= 5


def test_without_install_says_how(tmp_path):
    result = python("-S", "-I", str(ROOT / "run.py"), cwd=tmp_path)
    assert result.returncode == 2
    assert "pip install -e ." in result.stderr
    assert len(result.stderr.splitlines()) == 1
