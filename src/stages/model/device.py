"""Where a model runs."""

import os

import torch

from draftmesh.registry.errors import UserError

_KNOWN = "auto, cpu, cuda, cuda:<n> or mps"


def resolve_device(name: str) -> torch.device:
    """`auto` is the rank's CUDA device if there is one, else the CPU; other names are torch's. A
    CUDA device becomes torch's current one, which timings and memory counts refer to.

    Raises UserError for a name torch does not know and for a device that is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"model.device={name} is unknown; use {_KNOWN}") from None
    if device.type == "cuda":
        return _cuda(device)
    if device.type == "cpu" or (device.type == "mps" and torch.backends.mps.is_available()):
        return device
    raise UserError(f"model.device={name} cannot be used here; use auto or cpu")


def _cuda(device: torch.device) -> torch.device:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = int(os.environ.get("LOCAL_RANK", "0")) if device.index is None else device.index
    if index >= count:
        raise UserError(f"model.device=cuda:{index} of {count} GPUs here; use model.device=cpu")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)
