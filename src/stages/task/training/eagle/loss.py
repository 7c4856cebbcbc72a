"""What training an EAGLE head minimises and measures."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.base import HeadLoss
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.eagle.unroll import unroll
from draftmesh.stages.task.training.loss import soft_cross_entropy
from draftmesh.stages.task.training.windows import Windows, take


def _delayed(x: Tensor, by: int) -> Tensor:
    """x [B, R, H] moved `by` places on along R, zeros in front."""
    return functional.pad(x[:, : x.shape[1] - by], (0, 0, by, 0)) if by else x


class EagleLoss(HeadLoss):
    """Mean over drafted positions of decay^j * (CE to the target's distribution at step j, plus
    `regress` * SmoothL1 to the target's final-normed hidden state).

    The cross-entropy is EAGLE-3's with its 0.8^j (arXiv 2503.01840), the regression EAGLE-1's
    (arXiv 2401.15077). Tokens outside the draft vocabulary do not count. `steps` may change between
    calls.
    """

    table: Tensor
    rows: Tensor
    vocabulary: Tensor

    def __init__(
        self,
        head: Head,
        table: Tensor,
        lm_head: Tensor,
        vocabulary: Tensor,
        *,
        decay: float,
        regress: float,
    ) -> None:
        """table, lm_head [V, H]: the target's; vocabulary [Vd]: ascending ids the head predicts."""
        super().__init__()
        self.head, self.decay, self.regress = head, decay, regress
        self.steps = 1
        self.register_buffer("table", table.detach(), persistent=False)
        self.register_buffer("rows", lm_head.detach()[vocabulary].clone(), persistent=False)
        self.register_buffer("vocabulary", vocabulary, persistent=False)

    def _weight(self) -> Tensor:
        return self.head.lm_head.weight if self.head.config.version == 3 else self.rows

    def forward(self, batch: Batch) -> Tensor:
        """The loss, a scalar."""
        windows = Windows.of(batch)
        places = torch.arange(windows.size, device=batch.tokens.device)
        following = take(batch.tokens, windows.index(2))
        last = places == windows.counts[:, None] - 1
        used = (places < windows.counts[:, None]) & (last | torch.isin(following, self.vocabulary))
        goal = take(batch.features[:, :, -1], windows.index(1))[used]
        outputs = unroll(self.head, batch, self.table, self.steps)
        guesses = [_delayed(self.head.normed(x), j)[used] for j, x in enumerate(outputs)]
        hidden = torch.stack(guesses)
        place = places.expand_as(used)[used]
        steps = torch.arange(self.steps, device=place.device)[:, None]
        scale = (place >= steps) * self.decay**steps
        count = scale.sum().clamp_min(1)
        loss = soft_cross_entropy(hidden, self._weight(), goal, self.rows, scale)
        if self.regress:
            errors = functional.smooth_l1_loss(
                hidden.float(), goal.float().expand_as(hidden), reduction="none"
            )
            loss = loss + self.regress * (errors.mean(-1) * scale).sum()
        return loss / count

    @torch.no_grad()
    def measure(self, batch: Batch, styles: Sequence[str], into: Acceptance) -> None:
        """Count how far greedy chains of `into.steps` tokens follow the text from every place."""
        windows = Windows.of(batch)
        places = torch.arange(windows.size, device=batch.tokens.device)
        hits, valid = [], []
        for step, output in enumerate(unroll(self.head, batch, self.table, into.steps)):
            logits = self.head.normed(output) @ self._weight().T
            truth = take(batch.tokens, windows.index(2 + step))
            hits.append(self.vocabulary[logits.argmax(-1)] == truth)
            valid.append(places < windows.counts[:, None] - 1 - step)
        for row, style in enumerate(styles):
            into.add(style, torch.stack(hits)[:, row], torch.stack(valid)[:, row])
