"""Sample from the target, descend where a child matches."""

from dataclasses import dataclass

from torch import Tensor

from draftmesh.registry import register
from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome
from draftmesh.stages.verifier.walk import Walk, follow


@register("verifier", "match")
class Match:
    """Sample-and-match: the naive variant of SpecInfer (Miao et al., arXiv 2305.09781).

    The target's token is drawn at each node of the path as plain decoding would draw it at that
    position, so any drafting rule is lossless, and with the same noise the tokens are the same too.
    """

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "match"

    lossless = True

    def __init__(self, config: Config) -> None:
        self.config = config

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        """See the contract. Draws Stream.TARGET at each position of the path and of the bonus."""
        if target.tokens is not None:
            return follow(proposal, target.tokens)
        assert target.probs is not None
        walk = Walk(proposal)
        rows = walk.rows()
        while len(rows):
            p = target.probs[rows, walk.at[rows] + 1]
            choice = chance.sample(p, rows, positions[rows] + walk.accepted[rows], Stream.TARGET)
            walk.bonus[rows] = choice
            hits = walk.children(rows) & (proposal.tokens[rows] == choice.unsqueeze(-1))
            found = hits.any(1)
            rows = rows[found]
            if len(rows):
                walk.descend(rows, hits[found].long().argmax(1))
        return walk.outcome()
