"""What a certificate consists of, before it is done."""

from typing import Protocol

from draftmesh.stages.task.certify.clock import Clock
from draftmesh.stages.task.certify.part import Part


class Check(Protocol):
    """One thing to look at. Made and run by every rank; rank 0's part counts."""

    title: str

    cost: float
    """Seconds that it takes in full, as far as measured."""

    def run(self, seconds: float, clock: Clock) -> Part:
        """Do it in about `seconds`, smaller if need be, and say so."""
        ...
