"""The part of the target's vocabulary that a head predicts, as its files tell it."""

from pathlib import Path

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.stages.draft.eagle.config import HeadConfig


def use_offsets(state: dict[str, Tensor], config: HeadConfig, folder: Path) -> None:
    """Set `d2t` [Vd] (offsets from draft to target ids) and `t2d` [V] bool in a head's tensors.

    Files have both, one of them, or neither when the head predicts every token; some hold the
    target's ids themselves as d2t. Raises UserError if no reading of them makes sense.
    """
    d2t, t2d = state.get("d2t"), state.get("t2d")
    ids = _target_ids(d2t, t2d, config)
    if ids is None:
        raise UserError(
            f"draft.path={folder}: d2t and t2d do not name {config.draft_vocab} of the model's "
            f"{config.vocab} tokens"
        )
    state["d2t"] = ids - torch.arange(len(ids))
    state["t2d"] = torch.zeros(config.vocab, dtype=torch.bool)
    state["t2d"][ids] = True


def _target_ids(d2t: Tensor | None, t2d: Tensor | None, config: HeadConfig) -> Tensor | None:
    if not config.reduced:
        return torch.arange(config.vocab)
    known = None if t2d is None else t2d.bool().nonzero().squeeze(-1)
    if d2t is None:
        return known if known is not None and len(known) == config.draft_vocab else None
    if d2t.shape != (config.draft_vocab,):
        return None
    given = d2t.long()
    # Offsets repeat, and ids plus their index run over the vocabulary, so one reading stays.
    for ids in (given + torch.arange(len(given)), given):
        ascending = ids.sort().values
        inside = int(ascending[0]) >= 0 and int(ascending[-1]) < config.vocab
        if not inside or bool((ascending.diff() == 0).any()):
            continue
        if known is None or torch.equal(ascending, known):
            return ids
    return None
