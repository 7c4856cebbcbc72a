"""How the routed tokens spread over the experts."""

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class ExpertLoad:
    """Router choices of one rank, counted per layer and expert.

    `hits` holds, per call of an experts block, how many of this rank's own experts got a row;
    `choices` the calls themselves, (layer, ids [T, k]), while `record` is on.
    """

    layers: int
    experts: int
    device: torch.device
    record: bool = False
    counts: Tensor = field(init=False)
    hits: list[int] = field(default_factory=list)
    choices: list[tuple[int, Tensor]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reset()

    def routed(self, layer: int, ids: Tensor) -> None:
        """Real tokens' choices ids [T, k] in one layer."""
        self.counts[layer] += ids.reshape(-1).bincount(minlength=self.experts)
        if self.record:
            self.choices.append((layer, ids.cpu()))

    def computed(self, counts: list[int]) -> None:
        """Rows that each of this rank's experts computed in one call."""
        self.hits.append(sum(count > 0 for count in counts))

    def reset(self) -> None:
        """Forget everything, after a warm-up."""
        self.counts = torch.zeros(self.layers, self.experts, dtype=torch.int64, device=self.device)
        self.hits.clear()
        self.choices.clear()
