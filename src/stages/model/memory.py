"""How much memory there is and how much of it is free, a container's limit included."""

import os
from pathlib import Path

import torch

CGROUP = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 62


def all_memory() -> int:
    """Bytes of main memory that this machine or container has."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(machine, _limit())


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still take on a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_free_of_machine(), _free_of_container())


def _free_of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return UNLIMITED
    named = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(named["MemAvailable"].split()[0]) * 1024


def _limit() -> int:
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
    except OSError:
        return UNLIMITED
    return UNLIMITED if limit == "max" else int(limit)


def _free_of_container() -> int:
    """What a container's limit leaves; caches that can be given back count as free."""
    limit = _limit()
    if limit == UNLIMITED:
        return limit
    try:
        used = int((CGROUP / "memory.current").read_text())
        stat = (CGROUP / "memory.stat").read_text().splitlines()
    except OSError:
        return UNLIMITED
    given_back = dict(line.split() for line in stat)
    return limit - used + int(given_back.get("inactive_file", 0))
