"""SafeAILab's layout of a head: config.json and model.safetensors."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.headfiles import dtype_name, write_head


def tensors(head: Head) -> dict[str, Tensor]:
    """The head's tensors under the names of its layout, `d2t` and `t2d` only if reduced."""
    state = {
        name: value
        for name, value in head.state_dict().items()
        if head.config.reduced or name not in ("d2t", "t2d")
    }
    if head.config.version == 1:
        state = {name.replace("midlayer.", "layers.0."): value for name, value in state.items()}
    return state


def save_head(
    head: Head, folder: Path, dtype: torch.dtype, extra: dict[str, Any] | None = None
) -> None:
    """Write the head, floating-point tensors as `dtype`, and `extra` keys into its config.json."""
    keys = head.config.to_json() | {"torch_dtype": dtype_name(dtype)}
    write_head(folder, tensors(head), keys | (extra or {}), dtype)
