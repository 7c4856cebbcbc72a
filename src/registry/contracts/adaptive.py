"""What a draft may do besides drafting: change its size, and say what it did."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from draftmesh.registry.contracts.tracking import Scalar


@runtime_checkable
class Adaptive(Protocol):
    """A draft whose size changes between rounds, on all ranks at once.

    The decode loop asks every rank for its wish, takes the maximum with the round's other
    agreements, and settles it at the start of the next round, before anything else.
    """

    def wish(self) -> int:
        """The size this rank wants next; -1 to leave it to the others."""
        ...

    def settle(self, size: int) -> None:
        """The size of the proposals from now on."""
        ...


@runtime_checkable
class Resizable(Protocol):
    """A draft that does less work when it knows beforehand how deep proposals may be.

    Any draft can be kept short by `propose(budget)`; this is for those whose target forwards, or
    number of nodes, do not follow from the budget.
    """

    def resize(self, depth: int) -> None:
        """Propose at most `depth` deep from now on (1 to `Draft.depth` at first)."""
        ...


@runtime_checkable
class Informative(Protocol):
    """A draft with results of its own."""

    def facts(self) -> Mapping[str, Scalar]:
        """Flat names and values for the run's results: numbers, or text such as a reason."""
        ...
