"""An EAGLE head's tensors, whatever their names' prefixes."""

from pathlib import Path

from torch import Tensor

from draftmesh.stages.draft.headfiles import find_files, load_tensors

_PREFIXES = ("model.", "draft_model.", "module.")
_RENAMED = {
    "layers.0.": "midlayer.",  # EAGLE-1, speculators, NeMo
    "transformer.": "midlayer.",  # EAGLE-1 as converted by speculators
    "fusion_fc.": "fc.",
}


def canonical(name: str) -> str:
    """A tensor's name in SafeAILab's EAGLE-3 layout."""
    while name.startswith(_PREFIXES):
        name = name.split(".", 1)[1]
    for theirs, ours in _RENAMED.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors, canonical names, on the CPU."""
    found: dict[str, Tensor] = {}
    for file in find_files(folder):
        found |= {canonical(name): value for name, value in load_tensors(file).items()}
    return found
