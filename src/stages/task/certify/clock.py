"""The time that a certification may take, seen alike by all ranks."""

from collections.abc import Callable
from time import perf_counter

from draftmesh.registry.contracts.ranks import Ranks

PATIENCE = 1.5
"""How far a check may run over its share while the budget lasts: estimates are not exact."""


class Clock:
    """Seconds since the start; a budget ends on every rank at once. Methods are called by every
    rank."""

    def __init__(self, ranks: Ranks, budget: float) -> None:
        self.ranks, self.budget = ranks, budget
        self._start = perf_counter()

    def spent(self) -> float:
        """Seconds since the start: the latest over all ranks."""
        (milliseconds,) = self.ranks.agree(int(1e3 * (perf_counter() - self._start)))
        return milliseconds / 1e3

    def left(self) -> float:
        """Seconds of the budget that are left, at least 0."""
        return max(0.0, self.budget - self.spent())

    def late(self, seconds: float) -> Callable[[], bool]:
        """Whether a check that starts now and was given `seconds` should stop."""
        end = min(self.spent() + PATIENCE * seconds, self.budget)
        return lambda: self.spent() > end
