"""Heads that were trained together with their model fit no other."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.headfiles import load_tensors, tensor_names

COMPARED = 4
"""Tensors that are looked at; a fine-tuned model differs in all of them."""


def check_base(files: list[Path], target: Target, folder: Path) -> None:
    """Compare some weights of a merged checkpoint with the target's (those that it holds whole).

    Raises UserError naming the model to choose.
    """
    own = {name: value for name, value in target.model.state_dict().items() if value.ndim}
    for name, theirs in _some(files, own):
        ours = own[name].cpu()
        if theirs.shape == ours.shape and not torch.equal(theirs.to(ours.dtype), ours):
            raise UserError(
                f"draft.path={folder}: these heads belong to the model in that folder, whose "
                f"{name} is not the target's: set model=hf model.path={folder}"
            )


def _some(files: list[Path], own: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Tensors of the target that the files hold, spread over the model."""
    shared = sorted({name for file in files for name in tensor_names(file)} & own.keys())
    chosen = set(shared[:: max(1, len(shared) // COMPARED)])
    for file in files:
        yield from load_tensors(file, chosen.__contains__).items()
