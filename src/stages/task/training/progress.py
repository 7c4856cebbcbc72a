"""How far a training has come; saved with its checkpoints."""

import math
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Progress:
    """Optimizer steps, epochs and wall time, with the end of the plan.

    The training ends after `epochs`, or after `minutes` of wall time (all starts together) if those
    come first. Accelerate saves and restores it through `state_dict`.
    """

    epochs: int
    batches: int
    minutes: float | None
    epoch: int = 0
    batch: int = 0
    step: int = 0
    tokens: int = 0
    best: float = 0.0
    spent: float = 0.0
    _since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Wall time of this and earlier starts."""
        return self.spent + time.monotonic() - self._since

    @property
    def fraction(self) -> float:
        """Done part of the plan, 0 to 1."""
        done = (self.epoch * self.batches + self.batch) / max(1, self.epochs * self.batches)
        if self.minutes is not None:
            done = max(done, self.seconds / (60 * self.minutes))
        return min(1.0, done)

    def rate(self, peak: float, warmup: int) -> float:
        """Learning rate: linear warm-up over `warmup` steps, then a cosine to 2 % of the peak."""
        cosine = 0.02 + 0.49 * (1 + math.cos(math.pi * self.fraction))
        return peak * min(1.0, (self.step + 1) / warmup) * cosine

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "tokens": self.tokens,
            "best": self.best,
            "spent": self.seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint; the clock starts anew on top of the time spent."""
        for key, value in state.items():
            setattr(self, key, value)
        self._since = time.monotonic()
