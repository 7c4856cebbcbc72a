"""The choice of a size for batches of about the same number of rows."""

from draftmesh.stages.draft.adaptive.costs import Costs
from draftmesh.stages.draft.adaptive.survival import Survival

TRIAL = 3
"""Rounds of a trial."""
PERIOD = 48
"""Rounds between trials of another size at first; twice as many after every trial in vain."""
RAREST = 384
MARGIN = 1.05
"""How much better another size must be to be taken."""


class Lane:
    """First two sizes are tried: a usual one, and none at all. Then the size with the most expected
    tokens per second is used; at most twice the last best one, so that what deeper drafts bring is
    measured on the way. Now and then another size is tried again.
    """

    def __init__(self, survival: Survival, usual: int) -> None:
        self.survival, self.usual = survival, usual
        self.costs = Costs()
        self.wished = self.best = usual
        self.rounds = 0
        self._at_wished = 0
        self._steady = 0
        self._period = PERIOD
        self._used_at: dict[int, int] = {}

    def record(self, size: int, seconds: float | None, drafted: bool) -> None:
        """Learn from a round, and decide on the next."""
        self.rounds += 1
        self._used_at[size] = self.rounds
        if seconds is not None:
            self.costs.record(size, seconds, drafted)
        self._at_wished += size == self.wished
        begun = len(self.costs.measured) < 2
        if (begun or self.wished != self.best) and self._at_wished < TRIAL:
            return
        if begun:
            self._wish(0 if self.usual in self.costs.measured else self.usual)
        else:
            self._decide()

    def _decide(self) -> None:
        rates = self.rates()
        leader = max(rates, key=rates.__getitem__)
        if self.best not in rates or rates[leader] > MARGIN * rates[self.best]:
            self.best, self._steady, self._period = leader, 0, PERIOD
        self._steady += 1
        if self._steady < self._period:
            self._wish(self.best)
            return
        self._steady, self._period = 0, min(2 * self._period, RAREST)
        self._wish(self._another(rates))

    def _wish(self, size: int) -> None:
        if size != self.wished:
            self.wished, self._at_wished = size, 0

    def _another(self, rates: dict[int, float]) -> int:
        """The size worth a trial that was used longest ago: none, a neighbour, the likeliest."""
        likely = max((size for size in rates if size), key=rates.__getitem__)
        others = {0, self.best - 1, self.best + 1, likely} & rates.keys() - {self.best}
        return min(others, key=lambda size: (self._used_at.get(size, 0), size))

    def rates(self) -> dict[int, float]:
        """Expected tokens per second and row, by size; empty before two sizes are measured."""
        if len(self.costs.measured) < 2:
            return {}
        largest = min(max(2 * self.best, self.usual), self.survival.longest)
        return {s: self.survival.tokens(s) / self.costs.seconds(s) for s in range(largest + 1)}

    def reason(self) -> str:
        """Why the best size is the best, in one line."""
        rates = self.rates()
        if not rates:
            return "too few rounds to measure: the size that it starts with"
        gain = rates[self.best] / rates[0]
        if self.best:
            return f"{self._told(self.best)}, {self._told(0)} without drafts: {gain:.2f}x"
        other = max((size for size in rates if size), key=rates.__getitem__)
        told = f"{self._told(other)} at k={other}, {self._told(0)} without drafts"
        return f"drafting does not pay: {told}"

    def _told(self, size: int) -> str:
        return f"{self.survival.tokens(size):.2f} tokens in {1e3 * self.costs.seconds(size):.1f} ms"
