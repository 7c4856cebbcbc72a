"""What completes requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.request import Completion, Request


@dataclass
class Generation:
    """Completions of one process in request order, what was counted, the seconds it took."""

    completions: list[Completion]
    counters: Counters
    seconds: float


class Engine(Protocol):
    """Completes requests with the stages it was built from."""

    def generate(
        self,
        requests: Sequence[Request],
        batch_size: int,
        on_finish: Callable[[Completion], None] = ...,
    ) -> Generation:
        """`on_finish` is called as soon as a completion is final."""
        ...
