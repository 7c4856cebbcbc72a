"""What distilling a small draft model minimises and measures."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from draftmesh.registry.contracts.target import Target
from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.base import HeadLoss
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.chains import count_chains
from draftmesh.stages.task.training.loss import SoftCrossEntropy
from draftmesh.stages.task.training.windows import Windows, take


class SmallLoss(HeadLoss):
    """Mean over answer tokens of the cross-entropy to the target's distribution, plus `regress` *
    SmoothL1 to the target's final-normed hidden state (the soft targets of Hinton et al. 2015 at
    temperature 1, as in DistillSpec, arXiv 2310.08461, on the target's own texts).

    Prompts are only context. Tokens outside the draft vocabulary do not count.
    """

    rows: Tensor
    vocabulary: Tensor

    def __init__(
        self, model: nn.Module, target: Target, rows: Tensor, vocabulary: Tensor, regress: float
    ) -> None:
        """model: a decoder from embeddings to final-normed states; rows [Vd, H]: of the target's LM
        head, for the ids vocabulary [Vd]."""
        super().__init__()
        self.model, self.target, self.regress = model, target, regress
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("vocabulary", vocabulary, persistent=False)

    def _run(self, batch: Batch) -> Tensor:
        """Final-normed states [B, S, H]; padding comes last, so the causal mask is enough."""
        weight = next(self.model.parameters())
        embeddings = self.target.embed(batch.tokens).to(weight.dtype)
        hidden: Tensor = self.model(inputs_embeds=embeddings, use_cache=False).last_hidden_state
        return hidden

    def forward(self, batch: Batch) -> Tensor:
        """The loss, a scalar."""
        places = torch.arange(batch.tokens.shape[1] - 1, device=batch.tokens.device)
        answer = (places >= batch.prompt[:, None] - 1) & (places < batch.lengths[:, None] - 1)
        used = answer & torch.isin(batch.tokens[:, 1:], self.vocabulary)
        hidden = self._run(batch)[:, :-1][used]
        goal = batch.features[:, :-1, -1][used]
        count = max(1, len(goal))
        compute = hidden.dtype
        if torch.is_autocast_enabled(hidden.device.type):
            compute = torch.get_autocast_dtype(hidden.device.type)
        scale = torch.ones(1, len(goal), device=hidden.device)
        loss: Tensor = SoftCrossEntropy.apply(
            hidden[None].to(compute), self.rows, goal, self.rows, scale
        )
        if self.regress:
            error = functional.smooth_l1_loss(hidden.float(), goal.float(), reduction="none")
            loss = loss + self.regress * error.mean(-1).sum()
        return loss / count

    @torch.no_grad()
    def measure(self, batch: Batch, styles: Sequence[str], into: Acceptance) -> None:
        """Count how far greedy chains of `into.steps` tokens follow the text from every place."""
        windows = Windows.of(batch)
        hidden = take(self._run(batch), windows.index(1))
        guess = self.vocabulary[(hidden.to(self.rows.dtype) @ self.rows.T).argmax(-1)]
        hits = guess == take(batch.tokens, windows.index(2))
        count_chains(hits, windows, styles, into)
