"""How much memory is free, and how many layers of a model fit into it in float64."""

from pathlib import Path

import torch

from draftmesh.registry.contracts.target import Target

BYTES = 8
USABLE = 0.75
"""Of the free memory; the rest is for activations, key/values and a draft."""
CGROUP = Path("/sys/fs/cgroup")


def layers_that_fit(target: Target, free: int, shards: int) -> int:
    """How many of the first layers fit into `free` bytes in float64; 0 if not even one does.

    A model is loaded whole before it is split into `shards`.
    """
    total = sum(p.numel() for p in target.model.parameters()) * shards
    outside = sum(p.numel() for end in _ends(target) for p in end.parameters()) * shards
    each = max(1, (total - outside) // target.num_layers)
    room = int(free * USABLE / BYTES) - outside
    return max(0, min(target.num_layers, room // each))


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still take on a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_machine(), _container())


def _ends(target: Target) -> list[torch.nn.Module]:
    """Embedding and LM head (one module if they are tied)."""
    model = target.model
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    tied = head is None or head.weight is embedding.weight
    return [embedding] if tied else [embedding, head]


def _machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 1 << 62
    named = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(named["MemAvailable"].split()[0]) * 1024


def _container() -> int:
    """What a container's limit leaves; caches that can be given back count as free."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        stat = (CGROUP / "memory.stat").read_text().splitlines()
    except OSError:
        return 1 << 62
    if limit == "max":
        return 1 << 62
    given_back = dict(line.split() for line in stat)
    return int(limit) - used + int(given_back.get("inactive_file", 0))
