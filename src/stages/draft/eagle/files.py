"""A head's files: config.json and its tensors, whatever their names' prefixes."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from draftmesh.registry import UserError

_PREFIXES = ("model.", "draft_model.", "module.")


def read_config(folder: Path) -> dict[str, Any]:
    """The head's config.json."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"draft.path={folder}: no config.json in it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"draft.path={folder}: config.json cannot be read ({error})") from None
    if not isinstance(config, dict):
        raise UserError(f"draft.path={folder}: config.json is not an object")
    return config


def _files(folder: Path) -> list[Path]:
    for name in ("model.safetensors", "pytorch_model.bin"):
        index = folder / f"{name}.index.json"
        if index.exists():
            return sorted(
                {folder / f for f in json.loads(index.read_text())["weight_map"].values()}
            )
        if (folder / name).exists():
            return [folder / name]
    raise UserError(f"draft.path={folder}: neither model.safetensors nor pytorch_model.bin in it")


def _load(file: Path) -> dict[str, Tensor]:
    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        state: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
        return state
    except (OSError, SafetensorError, RuntimeError, EOFError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"draft.path: {file} is damaged or incomplete ({reason})") from None


def canonical(name: str) -> str:
    """A tensor's name in SafeAILab's EAGLE-3 layout."""
    while name.startswith(_PREFIXES):
        name = name.split(".", 1)[1]
    return name.replace("layers.0.", "midlayer.", 1) if name.startswith("layers.0.") else name


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors, canonical names, on the CPU."""
    return {canonical(k): v for file in _files(folder) for k, v in _load(file).items()}
