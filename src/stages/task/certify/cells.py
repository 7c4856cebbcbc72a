"""Pearson's chi-square test with a pooled tail."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from draftmesh.stages.task.certify.power import tail

K = TypeVar("K", bound=Hashable)

CELLS = 10
LEAST = 10.0
"""Expected draws of a cell; less likely outcomes are pooled."""


@dataclass(frozen=True)
class Fit:
    """Observed against expected counts.

    `cells` the tail included; `distance` is the total variation distance between observed shares
    and probabilities over the cells, which chance alone keeps above 0.
    """

    draws: int
    cells: int
    statistic: float
    p_value: float
    distance: float


def fit(probabilities: Mapping[K, float], observed: Counter[K], draws: int) -> Fit:
    """Test `draws` outcomes against the probabilities of the likely ones; the rest is the tail."""
    likely = sorted(probabilities, key=probabilities.__getitem__, reverse=True)
    kept = [key for key in likely[: CELLS - 1] if draws * probabilities[key] >= LEAST]
    chances = [probabilities[key] for key in kept]
    counts = [observed[key] for key in kept]
    chances.append(max(0.0, 1 - sum(chances)))
    counts.append(draws - sum(counts))
    if draws * chances[-1] < LEAST and len(kept) > 0:
        chances[-2:] = [chances[-2] + chances[-1]]
        counts[-2:] = [counts[-2] + counts[-1]]
    if len(chances) == 1:
        return Fit(draws, 1, 0.0, 1.0, 0.0)
    statistic = sum(
        (count - draws * chance) ** 2 / (draws * chance)
        for chance, count in zip(chances, counts, strict=True)
    )
    distance = sum(abs(c / draws - p) for p, c in zip(chances, counts, strict=True)) / 2
    freedom = len(chances) - 1
    return Fit(draws, len(chances), statistic, tail(statistic, freedom), distance)
