"""Medusa's typical acceptance, which is lossy."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome
from draftmesh.stages.verifier.walk import follow, padded_paths


@register("verifier", "typical")
class Typical:
    """Accept what the target finds typical (Cai et al., "Medusa", arXiv 2401.10774, section 2.3.1).

    A token stands if p(x) > min(epsilon, delta * exp(-entropy(p))); the longest accepted path wins,
    among equally long ones the likeliest; the token after it is the target's argmax. That is not
    the target's distribution: results are labelled lossy. Greedy decoding stays exact.
    """

    @dataclass(frozen=True)
    class Config:
        """epsilon: the hard threshold. delta: factor of the soft one (None: sqrt(epsilon))."""

        name: str = "typical"
        epsilon: float = 0.09
        delta: float | None = None

        def __post_init__(self) -> None:
            """Raises UserError for a value outside its range."""
            if not 0 < self.epsilon < 1:
                raise UserError(f"verifier.epsilon={self.epsilon}: must be between 0 and 1")
            if self.delta is not None and self.delta <= 0:
                raise UserError(f"verifier.delta={self.delta}: must be above 0")

    lossless = False

    def __init__(self, config: Config) -> None:
        self.epsilon = config.epsilon
        self.delta = math.sqrt(config.epsilon) if config.delta is None else config.delta

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        """See the contract. Draws nothing."""
        if target.tokens is not None:
            return follow(proposal, target.tokens)
        assert target.probs is not None
        probs = target.probs
        rows = torch.arange(len(probs), device=probs.device)
        above = (proposal.parents + 1).clamp(min=0)
        p = probs[rows.unsqueeze(-1), above, proposal.tokens]
        limit = (self.delta * torch.exp(-torch.special.entr(probs).sum(-1))).clamp(max=self.epsilon)
        typical = (p > limit.gather(1, above)) & proposal.valid
        return _longest(proposal, typical, p.log(), probs)


def _longest(proposal: Proposal, typical: Tensor, logs: Tensor, probs: Tensor) -> Outcome:
    """The best path of typical nodes: the longest, then the likeliest."""
    paths: list[list[int]] = []
    columns = (proposal.parents, typical, logs)
    for parents, stands, log in zip(*(c.tolist() for c in columns), strict=True):
        reached: dict[int, tuple[int, float]] = {-1: (0, 0.0)}
        for node, parent in enumerate(parents):
            if stands[node] and parent in reached:
                depth, sum_of_logs = reached[parent]
                reached[node] = (depth + 1, sum_of_logs + log[node])
        at = max(reached, key=reached.__getitem__)
        path: list[int] = []
        while at >= 0:
            path.insert(0, at)
            at = parents[at]
        paths.append(path)
    last = proposal.tokens.new_tensor([path[-1] if path else -1 for path in paths])
    after = probs[torch.arange(len(paths), device=probs.device), last + 1]
    return Outcome(*padded_paths(proposal, paths), after.argmax(-1))
