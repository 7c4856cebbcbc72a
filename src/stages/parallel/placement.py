"""Which rank holds which expert."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import register


@dataclass(frozen=True)
class Placement:
    """`owners[e]` is the expert-parallel rank that holds expert e; every expert has one owner.

    Experts are numbered anew by (owner, expert): `order` lists the old ids in the new order.
    """

    owners: tuple[int, ...]
    ranks: int

    @property
    def experts(self) -> int:
        """Number of experts."""
        return len(self.owners)

    @property
    def order(self) -> list[int]:
        """Expert ids, grouped by owner."""
        return sorted(range(self.experts), key=lambda e: (self.owners[e], e))

    @property
    def counts(self) -> list[int]:
        """How many experts each rank holds."""
        return [self.owners.count(rank) for rank in range(self.ranks)]

    def held_by(self, rank: int) -> list[int]:
        """Expert ids of one rank, in the order of its weights."""
        return [e for e in range(self.experts) if self.owners[e] == rank]

    def positions(self) -> Tensor:
        """[E] int64: place of each expert in `order`."""
        places = torch.empty(self.experts, dtype=torch.int64)
        places[torch.tensor(self.order, dtype=torch.int64)] = torch.arange(self.experts)
        return places


@register("placement", "contiguous")
class Contiguous:
    """Consecutive experts on each rank, the first ranks holding one more where uneven."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "contiguous"

    def __init__(self, config: Config) -> None:
        self.config = config

    def place(self, experts: int, ranks: int) -> Placement:
        """Placement of `experts` on `ranks`."""
        base, rest = divmod(experts, ranks)
        owners = [r for r in range(ranks) for _ in range(base + (r < rest))]
        return Placement(tuple(owners), ranks)


@register("placement", "round_robin")
class RoundRobin:
    """Expert e on rank e modulo the number of ranks."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "round_robin"

    def __init__(self, config: Config) -> None:
        self.config = config

    def place(self, experts: int, ranks: int) -> Placement:
        """Placement of `experts` on `ranks`."""
        return Placement(tuple(e % ranks for e in range(experts)), ranks)
