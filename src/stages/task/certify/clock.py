"""The time that a certification may take, seen alike by all ranks."""

from collections.abc import Callable
from time import perf_counter

from draftmesh.registry.contracts.ranks import Ranks


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

    def late(self, reserved: float) -> Callable[[], bool]:
        """Whether less than `reserved` seconds of the budget, which later checks need, are left."""
        return lambda: self.spent() > self.budget - reserved
