"""What the collectives of one rank moved."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

EXPERTS = "experts"
TENSOR = "tensor"
CONTROL = "control"


@dataclass
class Count:
    """Calls, rows and bytes that this rank sent to others, and the seconds it spent in the calls.

    Bytes follow the usual ring algorithms: an all-reduce of s bytes over n ranks sends
    2(n-1)/n * s per rank, an all-gather (n-1) * own part, an all-to-all what leaves the rank.
    """

    calls: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def add(self, other: "Count") -> None:
        """Add another count to this one."""
        self.calls += other.calls
        self.rows += other.rows
        self.bytes += other.bytes
        self.seconds += other.seconds


@dataclass
class Traffic:
    """Counts by category: `experts` (dispatch and combine), `tensor` (sharded layers and
    vocabulary), `control` (agreements and choices).

    Beside what was counted stands what the formulas of each scheme predict from token counts and
    router choices; summed over ranks the two are equal.
    """

    counts: dict[str, Count] = field(default_factory=dict)
    predictions: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def measure(self, category: str, rows: int, sent: int) -> Iterator[None]:
        """Count one collective that sends `rows` rows, `sent` bytes, and time it."""
        start = time.perf_counter()
        yield
        count = self.counts.setdefault(category, Count())
        count.add(Count(1, rows, sent, time.perf_counter() - start))

    def predict(self, category: str, sent: int) -> None:
        """Add bytes that a formula says will be sent."""
        self.predictions[category] = self.predictions.get(category, 0) + sent

    def predicted(self, *categories: str) -> int:
        """Predicted bytes of some categories (default: those of a forward)."""
        return sum(self.predictions.get(c, 0) for c in categories or (EXPERTS, TENSOR))

    def total(self, *categories: str) -> Count:
        """The sum over some categories (default: those of a forward, experts and tensor)."""
        result = Count()
        for category in categories or (EXPERTS, TENSOR):
            result.add(self.counts.get(category, Count()))
        return result

    def reset(self) -> None:
        """Forget everything, after a warm-up."""
        self.counts.clear()
        self.predictions.clear()
