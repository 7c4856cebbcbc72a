"""Whether a folder's contents fit each other and the model they are used with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.headfiles import find_files, load_tensors

DRAFT_IDS = "draft_ids"
"""The tensor that names the target's tokens that a draft can draft."""


def check_sizes(
    hidden: Any,
    vocab: Any,
    target: Target,
    folder: Path,
    given: str = "this draft is",
    wanted: str = "a draft",
) -> None:
    """Refuse what is given if it was made for a model of other sizes, naming both."""
    ours = (target.hidden_size, target.vocab_size)
    if (hidden, vocab) != ours:
        raise UserError(
            f"draft.path={folder}: {given} for a model with hidden size {hidden} and {vocab} "
            f"tokens, the model has hidden size {ours[0]} and {ours[1]} tokens; "
            f"choose {wanted} of this model"
        )


def load_reduced(
    raw: Mapping[str, Any], target: Target, folder: Path
) -> tuple[dict[str, Tensor], Tensor]:
    """The tensors of a draft without an LM head of its own, and the target's ids [Vd] it drafts.

    Raises UserError for damaged files and for a draft of another model, by its config.json (raw).
    """
    check_sizes(raw.get("hidden_size"), raw.get("vocab_size"), target, folder)
    (file,) = find_files(folder)
    state = load_tensors(file)
    return state, check_ids(state.pop(DRAFT_IDS, None), target, folder)


def check_tensors(state: Mapping[str, Tensor], own: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse tensors (state) that lack, add to or differ in shape from those expected (own)."""
    missing, unknown = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    if missing or unknown:
        what = f"lacks {missing[0]}" if missing else f"has the unknown tensor {unknown[0]}"
        raise UserError(f"draft.path={folder}: model.safetensors {what}")
    for name, value in state.items():
        if value.shape != own[name].shape:
            raise UserError(
                f"draft.path={folder}: {name} is {list(value.shape)}, "
                f"config.json says {list(own[name].shape)}"
            )


def check_ids(ids: Tensor | None, target: Target, folder: Path) -> Tensor:
    """The token ids that a draft can draft. Refused: none, and such as the target has not."""
    if ids is None:
        raise UserError(f"draft.path={folder}: model.safetensors lacks {DRAFT_IDS}")
    if not ids.numel() or int(ids.min()) < 0 or int(ids.max()) >= target.vocab_size:
        raise UserError(
            f"draft.path={folder}: {DRAFT_IDS} must be ids of the model's "
            f"{target.vocab_size} tokens"
        )
    return ids
