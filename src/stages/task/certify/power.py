"""What a chi-square test can see, by its noncentral distribution."""

import math
from collections.abc import Callable

import torch

POWER = 0.9
"""How likely a difference of the size that is called detectable is to be detected."""


def tail(statistic: float, freedom: float) -> float:
    """How often a chi-square variable with `freedom` degrees of freedom reaches `statistic`."""
    halves = torch.tensor([freedom / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(halves[0], halves[1]))


def critical(freedom: float, significance: float) -> float:
    """The statistic that is reached with probability `significance`."""
    return _root(lambda x: significance - tail(x, freedom), freedom)


def noncentrality(freedom: float, significance: float) -> float:
    """The noncentrality at which the test at this significance has the power POWER."""
    limit = critical(freedom, significance)
    return _root(lambda shift: _reached(limit, freedom, shift) - POWER, freedom)


def draws_needed(distance: float, cells: int, significance: float) -> int:
    """Draws after which a total variation distance between the cells' probabilities is detected.

    A distance d makes the noncentrality of n draws at least 4 n d**2, whatever its shape (Cauchy
    and Schwarz: sum of delta**2 / p >= (sum of |delta|)**2).
    """
    return math.ceil(noncentrality(cells - 1, significance) / (4 * distance**2))


def detectable(draws: int, cells: int, significance: float) -> float:
    """The smallest total variation distance that this number of draws detects."""
    return math.sqrt(noncentrality(max(cells - 1, 1), significance) / (4 * draws))


def _reached(limit: float, freedom: float, shift: float) -> float:
    """Tail of the noncentral distribution: chi-square variables mixed by a Poisson variable."""
    mean = shift / 2
    last = int(mean + 12 * math.sqrt(mean) + 30)
    terms = torch.arange(last, dtype=torch.float64)
    weights = torch.exp(terms * math.log(max(mean, 1e-300)) - mean - torch.lgamma(terms + 1))
    at = torch.full_like(terms, limit / 2)
    return float((weights * torch.special.gammaincc(freedom / 2 + terms, at)).sum())


def _root(rising: Callable[[float], float], start: float) -> float:
    """Where a rising function crosses zero, right of 0."""
    low, high = 0.0, max(start, 1.0)
    while rising(high) < 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) >= 0 else (middle, high)
    return high
