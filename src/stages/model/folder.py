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


def check_folder(folder: Path) -> None:
    """Raise UserError unless the folder has a readable config and complete weights."""
    if not folder.is_dir():
        raise UserError(f"model.path={folder} is no folder")
    read_json(folder / "config.json")
    index = folder / "model.safetensors.index.json"
    if index.exists():
        for name in sorted(set(read_json(index).get("weight_map", {}).values())):
            check_safetensors(folder / name)
    elif (folder / "model.safetensors").exists():
        check_safetensors(folder / "model.safetensors")
    elif not any((folder / name).exists() for name in _PICKLES):
        raise UserError(f"model.path={folder} has no weights (model.safetensors)")


def has_tokenizer(folder: Path) -> bool:
    """Whether the folder holds a tokenizer in any known format."""
    return any((folder / name).exists() for name in _TOKENIZERS)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a model folder; UserError when missing or malformed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"model.path={path.parent} has no {path.name}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); mend it or change model.path") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no JSON object; mend it or change model.path")
    return content


def check_safetensors(path: Path) -> None:
    """Compare a file's size with what its header promises (format: safetensors' README)."""
    try:
        size = path.stat().st_size
        expected = _promised_size(path, size)
    except FileNotFoundError:
        raise UserError(f"model.path={path.parent} lacks its weights file {path.name}") from None
    except (OSError, ValueError, struct.error, AttributeError, KeyError, TypeError):
        raise UserError(f"{path} is truncated or no safetensors file; fetch it again") from None
    if size != expected:
        raise UserError(f"{path} has {size} of {expected} bytes; fetch it again")


def _promised_size(path: Path, size: int) -> int:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > size - 8:
            raise ValueError("the header itself is cut")
        header = json.loads(file.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return 8 + int(length) + max(ends, default=0)
