"""What a run ran on."""

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = ("draftmesh", "torch", "transformers", "accelerate", "mlflow", "hydra-core", "numpy")


def environment(threads: int | None = None) -> dict[str, Any]:
    """Versions, processor, code and command; reads no module, so torch need not be imported.

    `threads` is the number of CPU threads that the run used.
    """
    return {
        "python": platform.python_version(),
        "versions": versions(),
        "platform": platform.platform(),
        "host": platform.node(),
        "cpu": cpu_model(),
        "cores": available_cores(),
        "threads": threads,
        "gpus": gpus(),
        "memory_gb": memory_gb(),
        "git": git_state(),
        "argv": sys.argv,
    }


def versions() -> dict[str, str]:
    """Versions of the packages that decide a result, where installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def available_cores() -> int:
    """Cores that this process may use, which a container can limit below the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_model() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def memory_gb() -> float | None:
    """The machine's memory in GiB."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def gpus() -> list[str]:
    """Names of the NVIDIA GPUs, by their driver's own tool."""
    listed = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    return listed.splitlines() if listed else []


def git_state() -> dict[str, Any] | None:
    """The commit of the code that runs and whether it was changed; None if no checkout."""
    here = str(Path(__file__).resolve().parent)
    sha = _output("git", "-C", here, "rev-parse", "HEAD")
    if not sha:
        return None
    # An installed package may lie in some other project's checkout, which says nothing about it.
    if not _output("git", "-C", here, "ls-files", "environment.py"):
        return None
    changed = _output("git", "-C", here, "status", "--porcelain", "--untracked-files=no")
    return {"sha": sha, "dirty": bool(changed)}


def tags(environment: dict[str, Any], run_dir: Path, overrides: list[str]) -> dict[str, str]:
    """A run's tags: code, versions, command and the folder that holds its results."""
    found = {f"version.{name}": version for name, version in environment["versions"].items()}
    found["version.python"] = environment["python"]
    git = environment["git"]
    if git is not None:
        found |= {"git.sha": git["sha"], "git.dirty": str(git["dirty"]).lower()}
    found["output_dir"] = str(run_dir.absolute())
    found["hydra.overrides"] = " ".join(overrides)
    found["cpu"] = environment["cpu"]
    return found


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
