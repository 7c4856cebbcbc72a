"""How many drafted tokens in a row are right, without running the decode loop."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Acceptance:
    """What greedy chains of `steps` tokens would be worth, by style and over all ("all").

    `right` and `total` pool, per draft position, how often the chain is right up to there, over
    every place of the texts. Decoding does not begin a draft at every place: it goes past what was
    accepted, so `tokens` and `forwards` count a walk along each text.
    """

    steps: int
    right: dict[str, Tensor] = field(default_factory=dict)
    total: dict[str, Tensor] = field(default_factory=dict)
    tokens: Counter[str] = field(default_factory=Counter)
    forwards: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.right = defaultdict(lambda: torch.zeros(self.steps, dtype=torch.float64))
        self.total = defaultdict(lambda: torch.zeros(self.steps, dtype=torch.float64))

    def add(self, style: str, hits: Tensor, valid: Tensor) -> None:
        """hits [K, R] says whether guess j at r was the text's token, where valid [K, R] (at the
        first places of a text)."""
        chain = (hits & valid).cummin(0).values
        walked = walk(chain.sum(0)[valid[0]].tolist())
        for key in (style, "all"):
            self.right[key] += chain.sum(1).cpu()
            self.total[key] += valid.sum(1).cpu()
            self.tokens[key] += int(valid[0].sum())
            self.forwards[key] += walked

    def rates(self, style: str = "all") -> list[float]:
        """P(at least j + 1 draft tokens are right) for j < K."""
        return (self.right[style] / self.total[style].clamp_min(1)).tolist()

    def length(self, style: str = "all") -> float:
        """Tokens per target forward that decoding these texts takes, bonus included."""
        return self.tokens[style] / max(1, self.forwards[style])


def walk(accepted: list[int]) -> int:
    """Target forwards that decode a text, from the number of draft tokens accepted at each place:
    every forward goes past those and the bonus token."""
    place = forwards = 0
    while place < len(accepted):
        place += accepted[place] + 1
        forwards += 1
    return forwards
