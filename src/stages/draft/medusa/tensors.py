"""The tensors of Medusa heads in a folder, whatever they are called there."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.stages.draft.headfiles import MODEL_FILES, find_files, load_tensors, tensor_names

FILES = ("medusa_lm_head.safetensors", "medusa_lm_head.pt", *MODEL_FILES)
MERGED = "medusa_head."
"""Prefix of the heads inside a whole model (Medusa-2)."""

_PREFIXES = ("module.", "model.", MERGED, "medusa_heads.")
_BLOCK = re.compile(r"(?:blocks\.)?(\d+)\.(?:layers\.(\d+)|(\d+)\.linear)\.(weight|bias)")
_OWN = re.compile(r"(?:lm_heads\.(\d+)|(\d+)\.\d+)\.weight")


@dataclass
class Parts:
    """block[kind, head, layer] of kind weight [H, H] or bias [H], own[head] LM heads [Vd, H],
    shared: one LM head for all [Vd, H], token_map: the target's ids of Vd tokens; `merged`: files
    of the whole model that they were in."""

    block: dict[tuple[str, int, int], Tensor] = field(default_factory=dict)
    own: dict[int, Tensor] = field(default_factory=dict)
    shared: Tensor | None = None
    token_map: Tensor | None = None
    merged: list[Path] = field(default_factory=list)


def read_parts(folder: Path) -> Parts:
    """Medusa's own layouts (with LM heads of their own, v1, or without, v2), Medusa-2's heads in a
    whole model, and vLLM's layout.

    Raises UserError for damaged files and for what is no Medusa head.
    """
    files = find_files(folder, FILES)
    names = [name for file in files for name in tensor_names(file)]
    merged = any(MERGED in name for name in names)
    parts = Parts(merged=files if merged else [])
    for file in files:
        for name, value in load_tensors(file, lambda n: MERGED in n or not merged).items():
            if not _sort(_plain(name), value, parts):
                raise UserError(f"draft.path={folder}: {name} is no part of Medusa heads")
    if not parts.block:
        raise UserError(f"draft.path={folder}: there are no Medusa heads in it")
    return parts


def _plain(name: str) -> str:
    while True:
        found = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
        if found is None:
            return name
        name = name.removeprefix(found)


def _sort(name: str, value: Tensor, parts: Parts) -> bool:
    if found := _BLOCK.fullmatch(name):
        head, ours, theirs, kind = found.groups()
        parts.block[kind, int(head), int(ours or theirs)] = value
    elif found := _OWN.fullmatch(name):
        parts.own[int(found[1] or found[2])] = value
    elif name == "lm_head.weight":
        parts.shared = value
    elif name == "token_map":
        parts.token_map = value.long()
    else:
        return False
    return True
