"""Whether a divergence can come from rounding alone."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Stream
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.task.certify.divergence import Divergence

MARGINS = {
    torch.float64: 1e-4,  # transformers' norms and routers round to float32 even here
    torch.float32: 1e-2,
    torch.float16: 0.25,
    torch.bfloat16: 1.0,
}
"""By how much rounding may move the difference of two log-probabilities."""

DISTANCES = {
    torch.float64: 1e-3,
    torch.float32: 0.01,
    torch.float16: 0.05,
    torch.bfloat16: 0.15,
}
"""Total variation between the same distribution computed in forwards of different shapes; a token
at the edge of a top-p set may fall on either side."""


@dataclass(frozen=True)
class Judged:
    """A divergence and what is known about it.

    margin: difference of the two best log-probabilities of plain decoding there (after the
    processors); distance: total variation between the distribution there in the decode loop and in
    plain decoding; None where it was not seen again. explained: rounding alone can do it.
    """

    divergence: Divergence
    margin: float | None
    distance: float | None
    explained: bool

    def record(self) -> dict[str, Any]:
        """For certificate.json."""
        found = self.divergence
        return {
            "prompt": found.request.id,
            "at": found.at,
            "token": found.ours,
            "plain_token": found.plain,
            "margin": self.margin,
            "distance": self.distance,
            "explained_by_rounding": self.explained,
        }


def judge(
    divergence: Divergence,
    loop: Tensor | None,
    plain: Tensor | None,
    greedy: bool,
    dtype: torch.dtype,
) -> Judged:
    """loop, plain [V]: the distributions there, None where a second run did not come by.

    Greedy: rounding can make the token the best one. Sampled with shared noise: the token is the
    one that this noise draws from the loop's distribution, which is plain decoding's up to
    rounding; where the loop did not come by again, rounding can make the noise draw the token.
    """
    if plain is None:
        return Judged(divergence, None, None, False)
    distance = None if loop is None else float((loop - plain).abs().sum() / 2)
    if greedy:
        explained = _close(plain, divergence, dtype)
    elif loop is None or distance is None:
        explained = _close(_scores(divergence, plain), divergence, dtype)
    else:
        drawn = int(_scores(divergence, loop).argmax()) == divergence.ours
        explained = drawn and distance <= DISTANCES[dtype]
    return Judged(divergence, top_two_margin(plain), distance, explained)


def top_two_margin(probs: Tensor) -> float | None:
    """Difference of the two largest log-probabilities; None if only one token is possible."""
    best = probs.topk(2).values
    return float(best[0].log() - best[1].log()) if best[1] > 0 else None


def _close(scores: Tensor, divergence: Divergence, dtype: torch.dtype) -> bool:
    """Whether the token is as good as the best one, up to rounding of its log-probability."""
    if divergence.ours is None or divergence.plain is None:
        return False
    return float(scores.max().log() - scores[divergence.ours].log()) <= MARGINS[dtype]


def _scores(divergence: Divergence, probs: Tensor) -> Tensor:
    """Scores [V] whose largest is the token that plain decoding's noise draws there."""
    chance = NoiseChance.of([divergence.request], probs.device)
    row = torch.zeros(1, dtype=torch.long)
    position = torch.tensor([len(divergence.place)])
    return chance.scores(probs.unsqueeze(0), row, position, Stream.TARGET)[0]
