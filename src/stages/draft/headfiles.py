"""A head's files on disk: config.json and tensors, safetensors or torch."""

import json
import pickle
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from draftmesh.registry import UserError

MODEL_FILES = ("model.safetensors", "pytorch_model.bin")

_FAILURES = (OSError, SafetensorError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError)

Wanted = Callable[[str], bool]


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


def find_files(folder: Path, names: Sequence[str] = MODEL_FILES) -> list[Path]:
    """The first of `names` that is there; several files where it is split up (an index)."""
    for name in names:
        index = folder / f"{name}.index.json"
        if index.exists():
            return _parts(index)
        if (folder / name).exists():
            return [folder / name]
    *others, last = names
    raise UserError(f"draft.path={folder}: neither {', '.join(others)} nor {last} in it")


def _parts(index: Path) -> list[Path]:
    try:
        parts = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        return sorted({index.parent / part for part in parts})
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        raise UserError(f"draft.path: {index} is damaged or incomplete") from None


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"draft.path: {file} is damaged or incomplete ({reason})") from None


def tensor_names(file: Path) -> list[str]:
    """The tensors in a file, as they are called there."""
    with _explained(file):
        if file.suffix == ".safetensors":
            with safe_open(file, "pt") as opened:
                return list(opened.keys())
        return list(_torch(file))


def load_tensors(file: Path, wanted: Wanted = lambda name: True) -> dict[str, Tensor]:
    """The wanted tensors of a file, on the CPU; others are not read (safetensors)."""
    with _explained(file):
        if file.suffix == ".safetensors":
            with safe_open(file, "pt") as opened:
                names = list(opened.keys())
                return {name: opened.get_tensor(name) for name in names if wanted(name)}
        return {name: value for name, value in _torch(file).items() if wanted(name)}


def _torch(file: Path) -> dict[str, Tensor]:
    """A state dict written by torch.save, read without running code from the file."""
    mapped = zipfile.is_zipfile(file)
    state = torch.load(file, map_location="cpu", weights_only=True, mmap=mapped)
    if not isinstance(state, dict):
        raise ValueError(f"a {type(state).__name__} instead of tensors by name")
    return {str(name): value for name, value in state.items() if isinstance(value, Tensor)}


def write_head(
    folder: Path,
    state: Mapping[str, Tensor],
    config: Mapping[str, Any],
    dtype: torch.dtype,
    file: str = "model.safetensors",
) -> None:
    """Write tensors, floating-point ones as `dtype`, and config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    # Copies, since safetensors stores no two names of one memory.
    stored = {
        name: value.detach()
        .cpu()
        .to(dtype if value.is_floating_point() else value.dtype, copy=True)
        .contiguous()
        for name, value in state.items()
    }
    save_file(stored, folder / file, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def dtype_name(dtype: torch.dtype) -> str:
    """As config.json spells it: bfloat16."""
    return str(dtype).removeprefix("torch.")
