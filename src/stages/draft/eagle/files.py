"""An EAGLE head's files: config.json and its tensors, whatever their names' prefixes."""

from pathlib import Path

from torch import Tensor

from draftmesh.stages.draft.headfiles import find_files, load_tensors, read_config

__all__ = ["canonical", "read_config", "read_tensors"]

_PREFIXES = ("model.", "draft_model.", "module.")


def canonical(name: str) -> str:
    """A tensor's name in SafeAILab's EAGLE-3 layout."""
    while name.startswith(_PREFIXES):
        name = name.split(".", 1)[1]
    return name.replace("layers.0.", "midlayer.", 1) if name.startswith("layers.0.") else name


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors, canonical names, on the CPU."""
    found: dict[str, Tensor] = {}
    for file in find_files(folder):
        found |= {canonical(name): value for name, value in load_tensors(file).items()}
    return found
