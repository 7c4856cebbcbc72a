"""Acceptance of drafts that read only tokens and what the target made of them.

Such a draft guesses the same after an accepted token as after the text's own, so its greedy chain
from a place is right up to where its guesses on the text itself stop being right: one pass over the
text gives every chain exactly.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.windows import Windows


def count_chains(hits: Tensor, windows: Windows, styles: Sequence[str], into: Acceptance) -> None:
    """hits [B, R]: whether the guess after answer token r (from 0) is the next token of the text.

    Chains begin behind every answer token, the first of which is the target's own.
    """
    steps = torch.arange(into.steps, device=hits.device)[:, None, None]
    places = torch.arange(windows.size, device=hits.device) + steps
    valid = places < windows.counts[:, None] - 1
    chains = hits.expand(into.steps, -1, -1).gather(
        2, places.clamp_max(windows.size - 1).expand(-1, len(hits), -1)
    )
    for row, style in enumerate(styles):
        into.add(style, chains[:, row], valid[:, row])
