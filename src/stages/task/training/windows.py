"""Where the answers lie in a batch of chats."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.stages.task.training.batches import Batch


@dataclass(frozen=True)
class Windows:
    """Where each chat's answer lies: `start` [B] is the index of the last prompt token, `size` R
    the longest answer, `counts` [B] the number of answer tokens per chat."""

    start: Tensor
    counts: Tensor
    size: int

    @staticmethod
    def of(batch: Batch) -> "Windows":
        """The windows of a batch."""
        counts = batch.lengths - batch.prompt
        return Windows(batch.prompt - 1, counts, int(counts.max()))

    def index(self, shift: int) -> Tensor:
        """Positions [B, R] of the windows' tokens, moved on by `shift`."""
        steps = torch.arange(self.size, device=self.start.device)
        return self.start[:, None] + shift + steps


def take(x: Tensor, index: Tensor) -> Tensor:
    """Rows index [B, R] of x [B, S, ...], the last one where the index is past the end."""
    index = index.clamp_max(x.shape[1] - 1)
    return x[torch.arange(x.shape[0], device=x.device)[:, None], index]
