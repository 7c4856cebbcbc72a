"""How many drafted tokens in a row are right, without running the decode loop."""

from collections import defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Acceptance:
    """Pools, per draft position, how often the chain is right up to there."""

    steps: int
    right: dict[str, Tensor] = field(default_factory=dict)
    total: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.right = defaultdict(lambda: torch.zeros(self.steps, dtype=torch.float64))
        self.total = defaultdict(lambda: torch.zeros(self.steps, dtype=torch.float64))

    def add(self, style: str, hits: Tensor, valid: Tensor) -> None:
        """hits [K, R] says whether guess j at r was the text's token, where valid [K, R]."""
        chain = (hits & valid).cummin(0).values
        for key in (style, "all"):
            self.right[key] += chain.sum(1).cpu()
            self.total[key] += valid.sum(1).cpu()

    def rates(self, style: str = "all") -> list[float]:
        """P(at least j + 1 draft tokens are right) for j < K."""
        return (self.right[style] / self.total[style].clamp_min(1)).tolist()

    def length(self, style: str = "all") -> float:
        """Tokens per target step, bonus included."""
        return 1 + sum(self.rates(style))
