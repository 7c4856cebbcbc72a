"""What tells one training from another, so that neither's work is taken for the other's."""

import hashlib
import json
from pathlib import Path

import torch
from torch import nn

from draftmesh.registry import UserError
from draftmesh.stages.model.manifest import file_sha256
from draftmesh.stages.task.records.files import write_text

SAMPLE = 64
"""Values of each parameter that are looked at."""
MARK = "material.txt"


def digest(facts: object) -> str:
    """Eight characters for facts that JSON can hold."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


def file_digest(path: Path) -> str:
    """Of a file's content; its name where there is none, which others complain about."""
    return file_sha256(path) if path.is_file() else str(path)


def model_digest(model: nn.Module) -> str:
    """Of a model's parameters: their names, shapes and some values of each, in bfloat16, so that
    the same checkpoint in another dtype counts as the same."""
    found = hashlib.sha256()
    for name, parameter in model.named_parameters():
        flat = parameter.detach().flatten()
        step = max(1, len(flat) // SAMPLE)
        values = flat[::step].to(torch.bfloat16).view(torch.int16).cpu()
        found.update(repr((name, tuple(parameter.shape))).encode() + values.numpy().tobytes())
    return found.hexdigest()[:12]


def claim(folder: Path, material: str, resume: bool) -> None:
    """Write down what is trained on, and of what. Raises UserError where a checkpoint that would be
    continued was trained on other chats or for another model."""
    mark = folder / MARK
    begun = resume and any((folder / name).exists() for name in ("checkpoint", "checkpoint.old"))
    if begun and mark.exists() and mark.read_text(encoding="utf-8").strip() != material:
        raise UserError(
            f"task.folder={folder} holds a training on other chats or for another model: choose "
            "another folder, or take task.resume=false to begin anew there"
        )
    write_text(mark, material + "\n")
