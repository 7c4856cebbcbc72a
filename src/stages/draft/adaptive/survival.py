"""How far drafts are accepted, measured with forgetting."""

from collections.abc import Sequence

MEMORY = 300.0
"""Steps of a sequence after which a measurement counts for 1/e."""
ENOUGH = 4.0
"""Steps from which on a depth's own measurement counts."""
PRIOR = 30.0
"""Steps that the estimate from other sizes is worth beside a size's own measurement."""


class Survival:
    """P(accepted depth >= d), from all steps that were allowed that deep whatever their size, since
    a shorter draft is the beginning of a longer one. Where that holds only roughly (a dynamic tree
    also has fewer nodes), what a size itself has brought takes over with time."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._tried = [0.0] * (longest + 1)
        self._stood = [0.0] * (longest + 1)
        self._steps = [0.0] * (longest + 1)
        self._tokens = [0.0] * (longest + 1)

    def record(self, size: int, budgets: Sequence[int], accepted: Sequence[int]) -> None:
        """One round at a size: per row the budget and how many tokens were accepted."""
        keep = (1 - 1 / MEMORY) ** len(accepted)
        for table in (self._tried, self._stood, self._steps, self._tokens):
            table[:] = [value * keep for value in table]
        for budget, count in zip(budgets, accepted, strict=True):
            for depth in range(1, min(size, budget) + 1):
                self._tried[depth] += 1
                self._stood[depth] += count >= depth
            if budget >= size:
                self._steps[size] += 1
                self._tokens[size] += count + 1

    def tokens(self, size: int) -> float:
        """Expected tokens per step at a size, the bonus token included."""
        expected = 1 + sum(self.reached(size))
        return (self._tokens[size] + PRIOR * expected) / (self._steps[size] + PRIOR)

    def reached(self, size: int) -> list[float]:
        """P(accepted depth >= d) for d from 1 to size; depths never tried go on as those before."""
        reached: list[float] = []
        before, rate = 1.0, 0.5
        for depth in range(1, size + 1):
            tried = self._tried[depth]
            if tried >= ENOUGH:
                now = min(self._stood[depth] / tried, before)
                rate = now / before if before else 0.0
            else:
                now = before * rate
            reached.append(now)
            before = now
        return reached
