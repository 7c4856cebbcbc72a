"""Which process a run belongs to, and whether it still lives."""

import os
import platform
import subprocess
from pathlib import Path

_STATE, _START = 0, 19  # fields of /proc/<pid>/stat after the command name


def process_start(pid: int) -> str | None:
    """When a process of this host started, as an opaque text; None if it is gone.

    A process id is used again after a while; together with this text it is not.
    """
    if Path("/proc/self/stat").exists():
        return _start_from_proc(pid)
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() or None


def is_alive(pid: int, started: str) -> bool:
    """Whether the very process that once reported `started` still runs."""
    return process_start(pid) == started


def own_identity() -> dict[str, str]:
    """Tags that let a later run on this host tell whether this process has died."""
    pid = os.getpid()
    return {"host": platform.node(), "pid": str(pid), "pid.started": process_start(pid) or ""}


def _start_from_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[_STATE] in "ZX":
        return None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return f"{boot}:{fields[_START]}"
