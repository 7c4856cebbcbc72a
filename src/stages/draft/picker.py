"""How an autoregressive draft picks its tokens, with the target's own processors."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.sampling import History
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.prefixes import Prefixes


class ChainPicker:
    """Collects a chain of tokens, one pick per draft forward.

    Greedy runs pick the argmax (a one-hot q). Sampling draws from q and keeps it for the ratio
    test; a coupled draft draws with the target's own noise instead, whose q no ratio test may use,
    so none is handed on. In a tensor-parallel group the first rank's pick counts.

    A row's chain ends behind the token where the draft's own probability of all of it falls below
    `least`. Whether it goes on depends on its prefix alone, as if q were p from there on, so no
    verifier is biased by it.
    """

    def __init__(self, context: DraftContext, rows: Rows, least: float = 0.0) -> None:
        self.context, self.rows, self.least = context, rows, least
        self.prefixes = Prefixes(rows, context.sampler.uses_history)
        self.begin()

    def observe(self, step: Step) -> None:
        """Remember the committed tokens (for processors that look back)."""
        self.prefixes.observe(step)

    def begin(self) -> None:
        """Start a new chain."""
        self.tokens: list[Tensor] = []
        self.q: list[Tensor] = []
        self.sure: list[Tensor] = []
        self.likely = torch.ones(())

    def pick(self, logits: Tensor, positions: Tensor) -> Tensor:
        """logits [B, V] and the absolute positions [B] of the tokens to pick -> ids [B]."""
        distribution = self.context.sampler(logits[:, None], self._history(logits.device))
        if distribution.tokens is not None:
            ids = distribution.tokens[:, -1]
        else:
            assert distribution.probs is not None
            q = distribution.probs[:, -1]
            ids = self._draw(q, positions)
        if self.least:
            self.likely = self.likely * logits.softmax(-1).gather(1, ids[:, None])[:, 0]
            ids, sure = self.context.ranks.decide(ids, self.likely >= self.least)
            self.sure.append(sure)
        else:
            (ids,) = self.context.ranks.decide(ids)
        self.tokens.append(ids)
        return ids

    @property
    def ended(self) -> bool:
        """No row's chain goes on."""
        return bool(self.least) and not bool(self.sure[-1].any())

    def _draw(self, q: Tensor, positions: Tensor) -> Tensor:
        lines = torch.arange(len(q), device=q.device)
        if self.context.coupled:
            return self.rows.chance.sample(q, lines, positions, Stream.TARGET)
        self.q.append(q)
        drawn = len(self.tokens)
        return self.rows.chance.sample(q, lines, positions - drawn, Stream.DRAFT + drawn)

    def proposal(self, budget: Tensor) -> Proposal:
        """The chain picked so far, at most budget [B] tokens of each row valid."""
        tokens = torch.stack(self.tokens, dim=1)
        steps = torch.arange(tokens.shape[1], device=tokens.device)
        if self.least:
            budget = budget.minimum(1 + torch.stack(self.sure, dim=1)[:, :-1].sum(1))
        q = torch.stack(self.q, dim=1) if self.q else None
        return Proposal.chain(tokens, steps < budget[:, None], q)

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.prefixes.drop(keep)

    def _history(self, device: torch.device) -> History | None:
        if not self.context.sampler.uses_history:
            return None
        if self.tokens:
            drafted = torch.stack(self.tokens, dim=1)
        else:
            drafted = torch.empty(self.prefixes.rows, 0, dtype=torch.long, device=device)
        steps = torch.arange(-1, drafted.shape[1] - 1, device=device)
        return self.prefixes.history(drafted, steps.expand_as(drafted))
