"""Block verification: one joint test of a whole chain."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome
from draftmesh.stages.verifier.drafted import (
    draft_rows,
    drawn_with,
    ratio,
    refuse_dynamic,
    residual,
)
from draftmesh.stages.verifier.walk import Walk, follow


@register("verifier", "block")
class Block:
    """Block verification of chains (Sun et al., arXiv 2403.10444).

    Let w_0 = 1, w_i = min(1, w_(i-1) p(x_i) / q(x_i)), and let the block keep at least the prefix
    x_1..x_i with probability w_i. Averaged over the next token x ~ q, a longer prefix is kept with
    probability sum_x min(w_i p(x), q(x)) = w_i - r_i, where r_i = sum_x max(w_i p(x) - q(x), 0).
    Stopping exactly at i has to make up the missing r_i, so given that nothing longer is kept, i is
    kept with probability h_i = r_i / (1 - w_i + r_i), and the next token comes from the normalised
    max(w_i p - q, 0): token x then follows the prefix with total weight min(w_i p, q) +
    max(w_i p - q, 0) = w_i p(x), as it should. At the end of the chain h = w. This keeps at least
    as many tokens as `ratio` in expectation. A chain may end early, by a rule that looks at its
    tokens so far.
    """

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "block"

    lossless = True

    def __init__(self, config: Config) -> None:
        self.config = config

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        """See the contract. Raises UserError for a tree.

        The test of the i-th token draws Stream.ACCEPT + i at the block's first position: what is
        kept depends on the tests after it, so their draws must not be met again by the next block,
        which may start among their positions.
        """
        refuse_dynamic(proposal, self.config.name)
        if not proposal.is_chain:
            raise UserError("verifier=block takes chains only: set draft.shape=chain")
        if target.tokens is not None:
            return follow(proposal, target.tokens)
        assert target.probs is not None
        return self._verify(proposal, target.probs, chance, positions)

    def _verify(
        self, proposal: Proposal, probs: Tensor, chance: Chance, positions: Tensor
    ) -> Outcome:
        walk = Walk(proposal)
        rows, lengths = walk.rows(), proposal.valid.sum(1)
        weights = _weights(proposal, probs)
        keeps = _keeps(proposal, probs, weights)
        tests = torch.arange(1, proposal.size + 1, device=rows.device)
        keeps = torch.where(tests == lengths.unsqueeze(-1), weights[:, 1:], keeps)
        keeps = keeps.masked_fill(~proposal.valid, 0)
        for test in range(1, proposal.size + 1):
            stands = chance.accept(keeps[:, test - 1], rows, positions, Stream.ACCEPT + test)
            walk.accepted[stands] = test
        walk.path = torch.where(tests <= walk.accepted.unsqueeze(-1), tests - 1, -1)
        after = probs[rows, walk.accepted]
        whole = walk.accepted == lengths
        walk.finish(rows[whole], after[whole], chance, positions, Stream.TARGET)
        cut = rows[~whole]
        if len(cut):
            scaled = after[cut] * weights[cut, walk.accepted[cut]].unsqueeze(-1)
            q = draft_rows(proposal, cut, walk.accepted[cut], scaled)
            walk.finish(cut, residual(scaled, q), chance, positions, Stream.RESIDUAL)
        return walk.outcome()


def _weights(proposal: Proposal, probs: Tensor) -> Tensor:
    """w_0 to w_K [B, K + 1]."""
    p = probs[:, : proposal.size].gather(2, proposal.tokens.unsqueeze(-1)).squeeze(-1)
    ratios = ratio(p, drawn_with(proposal))
    weights = [torch.ones_like(probs[:, 0, 0])]
    for step in range(proposal.size):
        weights.append((weights[-1] * ratios[:, step]).clamp(max=1))
    return torch.stack(weights, 1)


def _keeps(proposal: Proposal, probs: Tensor, weights: Tensor) -> Tensor:
    """h_1 to h_(K - 1) of a chain that goes on, and 0 in the last column [B, K]."""
    keeps = torch.zeros_like(weights[:, 1:])
    rows = torch.arange(len(probs), device=probs.device)
    for step in range(1, proposal.size):
        w = weights[:, step]
        p = probs[:, step] * w.unsqueeze(-1)
        q = draft_rows(proposal, rows, torch.full_like(rows, step), p)
        missing = (p - q).clamp_(min=0).sum(-1)
        others = 1 - w + missing
        keeps[:, step - 1] = torch.where(others > 0, missing / others, torch.ones_like(w))
    return keeps
