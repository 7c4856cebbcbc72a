"""Speculative sampling: accept with min(1, p/q), resample from what q leaves of p."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import register
from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome
from draftmesh.stages.verifier.drafted import (
    draft_rows,
    drawn_with,
    leave_out,
    ratio,
    refuse_dynamic,
    residual,
)
from draftmesh.stages.verifier.walk import Walk, follow


@register("verifier", "ratio")
class Ratio:
    """The ratio test on chains and trees of fixed shape, with any mix of drawn and one-hot nodes.

    Chains: Leviathan et al. (arXiv 2211.17192), Chen et al. (arXiv 2302.01318). Trees: siblings are
    tried in turn, each rejection leaving the residual as the next target; with replacement as in
    SpecInfer (arXiv 2305.09781), without as in Sequoia (arXiv 2402.12374), where a drawn token is
    taken out of q for its later siblings.
    """

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "ratio"

    lossless = True

    def __init__(self, config: Config) -> None:
        self.config = config

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        """See the contract. Raises UserError for a tree whose shape was not fixed beforehand.

        Draws Stream.ACCEPT + j for the j-th sibling, Stream.RESIDUAL after a rejection and
        Stream.TARGET after a leaf, each at the position of the token in question.
        """
        refuse_dynamic(proposal, self.config.name)
        if target.tokens is not None:
            return follow(proposal, target.tokens)
        assert target.probs is not None
        descend = self._chain if proposal.is_chain else self._tree
        return descend(proposal, target.probs, chance, positions)

    def _chain(
        self, proposal: Proposal, probs: Tensor, chance: Chance, positions: Tensor
    ) -> Outcome:
        """All acceptance tests at once, one residual at the first rejection."""
        walk = Walk(proposal)
        rows, size = walk.rows(), proposal.size
        steps = torch.arange(size, device=rows.device)
        p = probs[:, :size].gather(2, proposal.tokens.unsqueeze(-1)).squeeze(-1)
        chances = ratio(p, drawn_with(proposal)).masked_fill(~proposal.valid, 0)
        stands = chance.accept(
            chances.flatten(),
            rows.repeat_interleave(size),
            (positions.unsqueeze(-1) + steps).flatten(),
            Stream.ACCEPT,
        ).view(chances.shape)
        walk.accepted = stands.long().cumprod(1).sum(1)
        walk.path = torch.where(steps < walk.accepted.unsqueeze(-1), steps, -1)
        rejected = walk.accepted < proposal.valid.sum(1)
        after = probs[rows, walk.accepted]
        walk.finish(rows[~rejected], after[~rejected], chance, positions, Stream.TARGET)
        lost = rows[rejected]
        if len(lost):
            p = after[lost]
            q = draft_rows(proposal, lost, walk.accepted[lost], p)
            walk.finish(lost, residual(p, q), chance, positions, Stream.RESIDUAL)
        return walk.outcome()

    def _tree(
        self, proposal: Proposal, probs: Tensor, chance: Chance, positions: Tensor
    ) -> Outcome:
        """Level by level, all rows at once."""
        walk = Walk(proposal)
        rows = walk.rows()
        while len(rows):
            p = probs[rows, walk.at[rows] + 1]
            inner = walk.children(rows).any(1)
            walk.finish(rows[~inner], p[~inner], chance, positions, Stream.TARGET)
            rows, p = rows[inner], p[inner]
            taken = self._siblings(walk, rows, p, chance, positions)
            lost = taken < 0
            walk.finish(rows[lost], p[lost], chance, positions, Stream.RESIDUAL)
            rows, taken = rows[~lost], taken[~lost]
            walk.descend(rows, taken)
        return walk.outcome()

    def _siblings(
        self, walk: Walk, rows: Tensor, p: Tensor, chance: Chance, positions: Tensor
    ) -> Tensor:
        """Try the children of where the rows [R] stand, in order -> the accepted node [R] or -1.

        p [R, V] becomes the residual after every rejection, in place.
        """
        children = walk.children(rows)
        counts = children.sum(1)
        order = (~children).long().argsort(dim=1, stable=True)
        taken = torch.full_like(rows, -1)
        for sibling in range(walk.proposal.size):
            lines = ((taken < 0) & (sibling < counts)).nonzero().squeeze(-1)
            if len(lines) == 0:
                break
            nodes, own = order[lines, sibling], rows[lines]
            q = draft_rows(walk.proposal, own, nodes, p[lines])
            q = leave_out(walk.proposal, q, own, nodes, order[lines, :sibling])
            tokens = walk.proposal.tokens[own, nodes].unsqueeze(-1)
            chances = ratio(p[lines].gather(1, tokens), q.gather(1, tokens)).squeeze(-1)
            at = positions[own] + walk.accepted[own]
            stands = chance.accept(chances, own, at, Stream.ACCEPT + sibling)
            taken[lines[stands]] = nodes[stands]
            lost = lines[~stands]
            p[lost] = residual(p[lost], q[~stands])
        return taken
