"""Draft and target must mean the same token by the same id."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from draftmesh.registry import UserError


def check_same_ids(target: Any, draft: Any, path: str) -> None:
    """Compare two tokenizers id by id; embedding sizes may differ by padding.

    Raises UserError naming the first id that means different tokens.
    """
    if target is None or draft is None:
        side = "target" if target is None else "draft"
        raise UserError(f"draft.path={path}: the {side} has no tokenizer, so ids can't be compared")
    ours, theirs = (_tokens(t) for t in (target, draft))
    differing = sorted(i for i in ours.keys() | theirs.keys() if ours.get(i) != theirs.get(i))
    if differing:
        first = differing[0]
        raise UserError(
            f"draft.path={path}: its vocabulary is not the target's: {len(differing)} ids differ, "
            f"first {first}, which is {theirs.get(first)!r} there and {ours.get(first)!r} in the "
            "target; choose a draft model with the target's tokenizer"
        )


def _tokens(tokenizer: Any) -> dict[int, str]:
    return {i: token for token, i in tokenizer.get_vocab().items()}


def fit_vocabulary(logits: Tensor, size: int) -> Tensor:
    """logits [..., Vd] -> [..., size]: padding ids cut off, missing ones impossible."""
    extra = size - logits.shape[-1]
    if extra <= 0:
        return logits[..., :size]
    return F.pad(logits, (0, extra), value=float("-inf"))


def whole_vocabulary(logits: Tensor, ids: Tensor, size: int) -> Tensor:
    """logits [..., Vd] of the target's ids [Vd] -> [..., size]: the others are impossible."""
    full = logits.new_full((*logits.shape[:-1], size), -torch.inf)
    full[..., ids] = logits
    return full
