"""A tree that grows where the draft is sure, and keeps its best nodes."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Proposal
from draftmesh.stages.draft.tree.children import Places, confidence, likeliest
from draftmesh.stages.draft.tree.frontier import Frontier, RunNodes
from draftmesh.stages.draft.tree.start import Start

LEAST = -1e30


class DynamicGrowth:
    """EAGLE-2's tree (Li et al. 2024, arXiv 2406.16858): the `beams` best nodes of every level get
    as many children each; a node's score is the sum of the log-probabilities down to it. In the end
    the `nodes` best of all candidates stay; a parent scores at least as high as its children, so
    they hang together.

    Candidates: tokens, parents (-1 is the root), scores and ok, each [B, C].
    """

    def __init__(self, start: Start, beams: int, depth: int, nodes: int) -> None:
        self.start, self.beams, self.depth, self.nodes = start, beams, depth, nodes
        self.grown = 0
        nothing = start.budget.new_empty(len(start.budget), 0)
        self.tokens = self.parents = nothing
        self.scores, self.ok = nothing.double(), nothing.bool()
        self.run = RunNodes(nothing, nothing, nothing.bool())
        self.last = nothing
        """The candidates [B, M] whose logits come next."""

    def grow(self, logits: Tensor) -> Frontier | None:
        """logits [B, M, V] of the beams, or of the root (M = 1 serves all beams)."""
        rows, first = len(logits), self.grown == 0
        above = self.last.new_full((rows, 1), -1) if first else self.last
        history = self.start.prefixes.history(self.run.tokens, self.run.parents)
        if history is not None:
            logits = logits.expand(-1, above.shape[1], -1)
        places = Places(self.start.positions + self.grown, history)
        found = confidence(self.start.context, self.start.chance, logits, places)
        gains, tokens = likeliest(found, self.beams)
        gains, tokens = gains.double(), tokens.expand(-1, above.shape[1], -1)
        if not first:
            gains = gains + self.scores.gather(1, above).unsqueeze(-1)
        ok = (gains > LEAST) & (self.start.budget > self.grown)[:, None, None]
        tokens, ok = self.start.context.ranks.decide(tokens.flatten(1), ok.flatten(1))
        scores = gains.flatten(1).clamp(min=LEAST).masked_fill(~ok, -torch.inf)
        before = self.tokens.shape[1]
        self.tokens = torch.cat([self.tokens, tokens], 1)
        self.parents = torch.cat([self.parents, above.repeat_interleave(self.beams, 1)], 1)
        self.scores = torch.cat([self.scores, scores], 1)
        self.ok = torch.cat([self.ok, ok], 1)
        self.grown += 1
        return None if self.grown == self.depth else self._frontier(scores, before)

    def proposal(self) -> Proposal:
        """The best candidates so far, in the order in which they were found."""
        size = min(self.nodes, self.tokens.shape[1])
        order = self.scores.argsort(dim=1, descending=True, stable=True)[:, :size]
        (chosen,) = self.start.context.ranks.decide(order.sort(1).values)
        number = torch.full_like(self.tokens, -1)
        number.scatter_(1, chosen, torch.arange(size, device=chosen.device).expand_as(chosen))
        parents = self.parents.gather(1, chosen)
        parents = torch.where(parents < 0, parents, number.gather(1, parents.clamp(min=0)))
        return Proposal(
            self.tokens.gather(1, chosen), parents, self.ok.gather(1, chosen), fixed_shape=False
        )

    def _frontier(self, scores: Tensor, before: int) -> Frontier:
        best = scores.argsort(dim=1, descending=True, stable=True)[:, : self.beams].sort(1).values
        (best,) = self.start.context.ranks.decide(best)
        offset = self.run.tokens.shape[1]
        first = self.grown == 1
        # The M nodes just expanded were the last ones run, and have `beams` candidates each.
        expanded = best.div(self.beams, rounding_mode="floor")
        parents = torch.full_like(best, -1) if first else offset - self.last.shape[1] + expanded
        self.last = best + before
        tokens, valid = self.tokens.gather(1, self.last), self.ok.gather(1, self.last)
        self.run = RunNodes(
            torch.cat([self.run.tokens, tokens], 1),
            torch.cat([self.run.parents, parents], 1),
            torch.cat([self.run.valid, valid], 1),
        )
        expand = torch.arange(best.shape[1], device=best.device)
        return Frontier(tokens, self.run.parents, valid, offset, expand)
