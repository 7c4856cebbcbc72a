"""What a round costs at each size, measured."""

from bisect import bisect_left
from collections import deque
from statistics import median

RECENT = 12
"""Rounds of a size whose median counts."""
ENOUGH = 2
"""Rounds from which on a size's own measurement counts."""


class Costs:
    """Seconds per round, by the size of the drafts. A median, so that a hiccup of the machine does
    not count; sizes not measured lie on the line through their neighbours."""

    def __init__(self) -> None:
        self._rounds: dict[int, deque[float]] = {}

    def record(self, size: int, seconds: float) -> None:
        """One round, drafting, verifying and all else included."""
        self._rounds.setdefault(size, deque(maxlen=RECENT)).append(seconds)

    @property
    def measured(self) -> list[int]:
        """The sizes that have been measured, in order."""
        return sorted(s for s, rounds in self._rounds.items() if len(rounds) >= ENOUGH)

    def seconds(self, size: int) -> float:
        """Seconds per round; at least two sizes must have been measured."""
        known = self.measured
        if size in known:
            return median(self._rounds[size])
        at = min(max(bisect_left(known, size), 1), len(known) - 1)
        low, high = known[at - 1], known[at]
        cheap, dear = median(self._rounds[low]), median(self._rounds[high])
        slope = (dear - cheap) / (high - low)
        if size > high:
            return dear + max(slope, 0.0) * (size - high)
        return cheap + slope * (size - low)
