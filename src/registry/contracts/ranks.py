"""How the ranks of a run agree; with one rank every method is the identity."""

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor


class Ranks(Protocol):
    """The process's place in the mesh world = dp * tp = ep * etp, and the agreements it needs.

    Ranks of one tensor-parallel group hold the same sequences and must choose the same tokens;
    each data-parallel group owns its own prompts; forwards with expert collectives are entered by
    every rank of the expert-parallel group.
    """

    rank: int
    world: int
    tp_rank: int
    tp: int
    dp_rank: int
    dp: int

    def decide(self, *ids: Tensor) -> tuple[Tensor, ...]:
        """The tensor-parallel group's first rank decides: broadcast int64 or bool tensors."""
        ...

    def agree(self, *values: int) -> tuple[int, ...]:
        """The maximum of each value over all ranks that share collectives in a forward."""
        ...

    def gather(self, item: Any) -> list[Any] | None:
        """Rank 0 gets one item per data-parallel group (picklable), in order; others get None."""
        ...

    def own(self, items: Sequence[Any]) -> list[Any]:
        """The items (prompts) that this rank's data-parallel group owns."""
        ...
