"""What a round costs at each size, measured."""

from bisect import bisect_left
from collections import deque
from statistics import median

RECENT = 24
"""Rounds of a size that count."""
ENOUGH = 2
"""Rounds from which on a size's own measurement counts."""


class Costs:
    """Seconds per round, by the size of the drafts. Rounds that drafted and rounds that found
    nothing to draft have a median each, so that a hiccup of the machine does not count; a size's
    cost is their mean, by how often they occur. Sizes not measured lie on the line through their
    neighbours."""

    def __init__(self) -> None:
        self._rounds: dict[int, deque[tuple[bool, float]]] = {}

    def record(self, size: int, seconds: float, drafted: bool) -> None:
        """One round, drafting, verifying and all else included."""
        self._rounds.setdefault(size, deque(maxlen=RECENT)).append((drafted, seconds))

    @property
    def measured(self) -> list[int]:
        """The sizes that have been measured, in order."""
        return sorted(s for s, rounds in self._rounds.items() if len(rounds) >= ENOUGH)

    def seconds(self, size: int) -> float:
        """Seconds per round; at least two sizes must have been measured."""
        known = self.measured
        if size in known:
            return self._mean(size)
        at = min(max(bisect_left(known, size), 1), len(known) - 1)
        low, high = known[at - 1], known[at]
        cheap, dear = self._mean(low), self._mean(high)
        slope = (dear - cheap) / (high - low)
        if size > high:
            return dear + max(slope, 0.0) * (size - high)
        return cheap + slope * (size - low)

    def _mean(self, size: int) -> float:
        rounds = self._rounds[size]
        kinds = ([s for drafted, s in rounds if drafted == kind] for kind in (True, False))
        return sum(len(kind) * median(kind) for kind in kinds if kind) / len(rounds)
