"""Distillation of the target's next-token distribution into a draft without feedback."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.base import HeadLoss
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.chains import count_chains
from draftmesh.stages.task.training.loss import soft_cross_entropy
from draftmesh.stages.task.training.windows import Windows, take


class DistilLoss(HeadLoss):
    """Mean over answer tokens of the cross-entropy to the target's distribution, plus `regress` *
    SmoothL1 to the target's final-normed hidden state (the soft targets of Hinton et al. 2015 at
    temperature 1, as in DistillSpec, arXiv 2310.08461, on the target's own texts).

    Prompts are only context. Tokens outside the draft vocabulary do not count.
    """

    rows: Tensor
    vocabulary: Tensor

    def __init__(self, rows: Tensor, vocabulary: Tensor, regress: float) -> None:
        """rows [Vd, H]: of the target's LM head, for the ids vocabulary [Vd]."""
        super().__init__()
        self.regress = regress
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("vocabulary", vocabulary, persistent=False)

    @abstractmethod
    def outputs(self, batch: Batch, where: Tensor) -> Tensor:
        """Stand-ins [M, H] for the target's final-normed states at M places, where [B, S] bool."""

    def forward(self, batch: Batch) -> Tensor:
        """The loss, a scalar."""
        following = functional.pad(batch.tokens[:, 1:], (0, 1))
        used = _predicting(batch, 0) & torch.isin(following, self.vocabulary)
        hidden, goal = self.outputs(batch, used), batch.features[:, :, -1][used]
        count = max(1, len(goal))
        scale = torch.ones(1, len(goal), device=hidden.device)
        loss = soft_cross_entropy(hidden[None], self.rows, goal, self.rows, scale)
        if self.regress:
            error = functional.smooth_l1_loss(hidden.float(), goal.float(), reduction="none")
            loss = loss + self.regress * error.mean(-1).sum()
        return loss / count

    @torch.no_grad()
    def measure(self, batch: Batch, styles: Sequence[str], into: Acceptance) -> None:
        """Count how far greedy chains of `into.steps` tokens follow the text from every place."""
        where = _predicting(batch, 1)
        hidden = self.outputs(batch, where)
        guess = self.vocabulary[(hidden.to(self.rows.dtype) @ self.rows.T).argmax(-1)]
        hits = torch.zeros_like(where)
        hits[where] = guess == functional.pad(batch.tokens[:, 1:], (0, 1))[where]
        windows = Windows.of(batch)
        count_chains(take(hits, windows.index(1)), windows, styles, into)


def _predicting(batch: Batch, first: int) -> Tensor:
    """The places [B, S] before answer tokens `first` (from 0) and after."""
    places = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
    begin, end = batch.prompt[:, None] - 1 + first, batch.lengths[:, None] - 1
    return (places >= begin) & (places < end)
