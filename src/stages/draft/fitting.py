"""Whether a folder's contents fit each other and the model they are used with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target


def check_sizes(raw: Mapping[str, Any], target: Target, folder: Path) -> None:
    """Refuse what was made for a model of other sizes, naming both, by its config.json (raw)."""
    theirs = (raw.get("hidden_size"), raw.get("vocab_size"))
    ours = (target.hidden_size, target.vocab_size)
    if theirs != ours:
        raise UserError(
            f"draft.path={folder}: this draft is for a model with hidden size {theirs[0]} and "
            f"{theirs[1]} tokens, the model has hidden size {ours[0]} and {ours[1]} tokens; "
            "choose a draft of this model"
        )


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
        raise UserError(f"draft.path={folder}: model.safetensors lacks draft_ids")
    if not ids.numel() or int(ids.min()) < 0 or int(ids.max()) >= target.vocab_size:
        raise UserError(
            f"draft.path={folder}: draft_ids must be ids of the model's {target.vocab_size} tokens"
        )
    return ids
