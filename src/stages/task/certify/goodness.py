"""Whether many draws after a forced prefix come from the target's distribution."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from draftmesh.stages.task.certify.cells import CELLS, Fit, fit
from draftmesh.stages.task.certify.draws import Draws, Pair
from draftmesh.stages.task.certify.power import detectable
from draftmesh.stages.task.certify.prefix import Prefix
from draftmesh.stages.task.certify.rounding import DISTANCES
from draftmesh.stages.task.certify.watch import Place

LIKELY = 64


@dataclass(frozen=True)
class Goodness:
    """first, both: the fit of the first token, and of the first two together. impossible: draws of
    a token that had probability 0. drift: total variation between the distributions met in the
    decode loop and those of one plain forward, the largest over the places that were looked at."""

    first: Fit
    both: Fit
    impossible: int
    drift: float

    @property
    def p_value(self) -> float:
        """The smaller of the two."""
        return min(self.first.p_value, self.both.p_value)

    def holds(self, significance: float, dtype: torch.dtype) -> bool:
        """Whether nothing speaks against the target's distribution."""
        fits = self.p_value >= significance and self.impossible == 0
        return fits and self.drift <= DISTANCES[dtype]

    def summary(self, significance: float, dtype: torch.dtype) -> str:
        """In words."""
        draws = self.first.draws
        if self.impossible:
            return f"{self.impossible} of {draws:,} draws had probability 0"
        if self.drift > DISTANCES[dtype]:
            return (
                "distributions in the decode loop differ from plain decoding's: total variation "
                f"{self.drift:.2g}"
            )
        if self.p_value >= significance:
            return f"{draws:,} draws fit the target's distribution (p = {self.p_value:.2g})"
        apart = max(self.first.distance, self.both.distance)
        return (
            f"{draws:,} draws do not fit the target's distribution (p = {self.p_value:.1g}, total "
            f"variation {apart:.2g})"
        )

    def record(self, significance: float) -> dict[str, Any]:
        """For certificate.json."""
        return {
            "draws": self.first.draws,
            "p_value": self.p_value,
            "significance": significance,
            "detects_total_variation": detectable(self.first.draws, CELLS, significance),
            "first_token": asdict(self.first),
            "first_two_tokens": asdict(self.both),
            "impossible_draws": self.impossible,
            "drift": self.drift,
        }


def goodness(draws: Draws, prefix: Prefix, reference: dict[Place, Tensor]) -> Goodness:
    """Compare (on rank 0). The expected probabilities are those that the verifier was given, the
    mean over the rows; `drift` tells how far these are from plain decoding's."""
    start = prefix.tokens
    here = draws.loop[start]
    after = {place[-1]: seen for place, seen in draws.loop.items() if place != start}
    count = draws.pairs.total()
    firsts = Counter[int]()
    for (token, _), times in draws.pairs.items():
        firsts[token] += times
    pairs: dict[Pair, float] = {}
    for token, p in _likely(here).items():
        pairs |= {(token, second): p * q for second, q in _likely(after.get(token)).items()}
        if draws.pairs[token, None]:
            pairs[token, None] = p
    return Goodness(
        fit(_likely(here), firsts, count),
        fit(pairs, draws.pairs, count),
        _impossible(draws, here, after),
        max(float((seen - reference[p]).abs().sum() / 2) for p, seen in draws.loop.items()),
    )


def _likely(probs: Tensor | None) -> dict[int, float]:
    if probs is None:
        return {}
    best = probs.topk(min(LIKELY, len(probs)))
    return dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))


def _impossible(draws: Draws, here: Tensor, after: dict[int, Tensor]) -> int:
    return sum(
        times
        for (first, second), times in draws.pairs.items()
        if here[first] == 0 or (second is not None and first in after and after[first][second] == 0)
    )
