"""What training Medusa heads minimises and measures."""

from collections.abc import Sequence

import torch
from torch import Tensor

from draftmesh.stages.draft.medusa.heads import MedusaHeads
from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.base import HeadLoss
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.loss import soft_cross_entropy
from draftmesh.stages.task.training.windows import Windows, take


class MedusaLoss(HeadLoss):
    """Mean over answer tokens and heads k of decay^k * the cross-entropy of head k's guess, made
    k + 1 places before, to the target's own distribution.

    Medusa-1's loss with its 0.8^k (arXiv 2401.10774, section 2.2.1), with the target's soft
    distribution in place of the text's token. Tokens outside the draft vocabulary do not count.
    """

    rows: Tensor
    vocabulary: Tensor

    def __init__(self, heads: MedusaHeads, rows: Tensor, vocabulary: Tensor, decay: float) -> None:
        """rows [Vd, H]: of the target's LM head, for the ids vocabulary [Vd]."""
        super().__init__()
        self.heads, self.decay = heads, decay
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("vocabulary", vocabulary, persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """The loss, a scalar."""
        windows, count = Windows.of(batch), self.heads.count
        places = torch.arange(windows.size, device=batch.tokens.device)
        known = torch.isin(take(batch.tokens, windows.index(2)), self.vocabulary)
        used = known & (places < windows.counts[:, None] - 1)
        last = batch.features[:, :, -1]
        goal = take(last, windows.index(1))[used]
        before = [take(last, windows.index(-k).clamp(min=0))[used] for k in range(count)]
        states = self.heads.states(torch.stack(before).to(self.heads.weight.dtype), count)
        heads = torch.arange(count, device=places.device)[:, None]
        # No draft begins within the prompt.
        scale = (places.expand_as(used)[used] >= heads) * self.decay**heads
        total = sum(self._entropies(states, goal, scale), torch.zeros((), device=goal.device))
        return total / scale.sum().clamp_min(1)

    def _entropies(self, states: Tensor, goal: Tensor, scale: Tensor) -> list[Tensor]:
        """Sums of the heads' cross-entropies: of all at once where they share an LM head."""
        lm_heads = self.heads.lm_heads
        if lm_heads is None or len(lm_heads) == 1:
            weight = self.rows if lm_heads is None else lm_heads[0]
            return [soft_cross_entropy(states, weight, goal, self.rows, scale)]
        return [
            soft_cross_entropy(states[k : k + 1], weight, goal, self.rows, scale[k : k + 1])
            for k, weight in enumerate(lm_heads)
        ]

    @torch.no_grad()
    def measure(self, batch: Batch, styles: Sequence[str], into: Acceptance) -> None:
        """Count how far greedy chains of `into.steps` tokens follow the text from every place; as
        far as there are heads."""
        windows = Windows.of(batch)
        count = min(into.steps, self.heads.count)
        places = torch.arange(windows.size, device=batch.tokens.device)
        hidden = take(batch.features[:, :, -1], windows.index(0)).to(self.heads.weight.dtype)
        states = self.heads.states(hidden.flatten(0, 1), count)
        hits = places.new_zeros(into.steps, *hidden.shape[:2]).bool()
        valid = hits.clone()
        for step in range(into.steps):
            valid[step] = places < windows.counts[:, None] - 1 - step
            if step < count:
                guess = self._best(states[step], step).view(hidden.shape[:2])
                hits[step] = guess == take(batch.tokens, windows.index(2 + step))
        for row, style in enumerate(styles):
            into.add(style, hits[:, row], valid[:, row])

    def _best(self, states: Tensor, head: int) -> Tensor:
        """states [M, H] of a head -> its likeliest tokens [M]."""
        lm_heads = self.heads.lm_heads
        weight = self.rows if lm_heads is None else lm_heads[min(head, len(lm_heads) - 1)]
        return self.vocabulary[(states.to(weight.dtype) @ weight.T).argmax(-1)]
