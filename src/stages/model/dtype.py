"""The number format a model computes in."""

from pathlib import Path

import torch

from draftmesh.registry.errors import UserError

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_FAST_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # x86, x86, Arm


def resolve_dtype(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 where the device multiplies it in hardware, else float32."""
    if name == "auto":
        return torch.bfloat16 if _fast_bfloat16(device) else torch.float32
    if name not in DTYPES:
        raise UserError(f"model.dtype={name} is not one of auto, {', '.join(DTYPES)}")
    return DTYPES[name]


def _fast_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and not _FAST_FLAGS.isdisjoint(cpu_flags())


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> set[str]:
    """The first core's instruction set extensions; empty where Linux does not tell."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return set()
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return set(value.split())
    return set()
