"""A local model folder, checked before anything heavy is read."""

import json
import struct
from pathlib import Path
from typing import Any

from draftmesh.registry.errors import UserError

_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "spiece.model",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
)


def check_folder(folder: Path, what: str) -> None:
    """Raise UserError unless the folder (`what` in messages) has a config and complete weights."""
    if not folder.is_dir():
        raise UserError(f"{what} is no folder")
    _read_json(folder / "config.json", what)
    index = folder / "model.safetensors.index.json"
    if index.exists():
        shards = _read_json(index, what).get("weight_map", {}).values()
        for name in sorted(set(shards)):
            _check_safetensors(folder / name, what)
    elif (folder / "model.safetensors").exists():
        _check_safetensors(folder / "model.safetensors", what)
    elif not any((folder / name).exists() for name in _PICKLES):
        raise UserError(f"{what} has no weights (model.safetensors)")


def has_tokenizer(folder: Path) -> bool:
    """Whether the folder holds a tokenizer in any known format."""
    return any((folder / name).exists() for name in _TOKENIZERS)


def _read_json(path: Path, what: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{what} has no {path.name}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{what}: {path.name} cannot be read ({error})") from None
    if not isinstance(content, dict):
        raise UserError(f"{what}: {path.name} holds no JSON object")
    return content


def _check_safetensors(path: Path, what: str) -> None:
    """Compare a file's size with what its header promises (format: safetensors' README)."""
    try:
        size = path.stat().st_size
        expected = _promised_size(path, size)
    except FileNotFoundError:
        raise UserError(f"{what} lacks its weights file {path.name}") from None
    except (OSError, ValueError, struct.error, AttributeError, KeyError, TypeError):
        raise UserError(f"{what}: {path.name} is truncated or no safetensors file") from None
    if size != expected:
        raise UserError(f"{what}: {path.name} has {size} of {expected} bytes; fetch it again")


def _promised_size(path: Path, size: int) -> int:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > size - 8:
            raise ValueError("the header itself is cut")
        header = json.loads(file.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return 8 + int(length) + max(ends, default=0)
