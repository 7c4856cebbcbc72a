"""SafeAILab's layout of a head: config.json and model.safetensors."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from draftmesh.stages.draft.eagle.head import Head


def tensors(head: Head) -> dict[str, Tensor]:
    """The head's tensors under the names of its layout, `d2t` and `t2d` only if reduced."""
    state = {
        name: value.detach().cpu().contiguous()
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
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        name: value.to(dtype) if value.is_floating_point() else value
        for name, value in tensors(head).items()
    }
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    keys = head.config.to_json() | {"torch_dtype": str(dtype).removeprefix("torch.")}
    (folder / "config.json").write_text(json.dumps(keys | (extra or {}), indent=2) + "\n")
