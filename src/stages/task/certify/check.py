"""What a certificate consists of, before it is done."""

from collections.abc import Callable
from typing import Protocol

from draftmesh.stages.task.certify.part import Part


class Check(Protocol):
    """One thing to look at. Made and run by every rank; rank 0's part counts."""

    title: str

    cost: float
    """Seconds that it takes in full, as far as measured."""

    def run(self, seconds: float, late: Callable[[], bool]) -> Part:
        """Do it in about `seconds`, smaller if need be, stop when it is `late`, and say so."""
        ...
