"""Where the time of the decode loop goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch

from draftmesh.registry.contracts.counters import Counters


class Clock:
    """Adds wall time to fields of Counters; on a GPU it waits for the work to finish first."""

    def __init__(self, counters: Counters, device: torch.device) -> None:
        self.counters = counters
        self.device = device

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the time spent inside to `name`."""
        start = self.now()
        yield
        spent = self.now() - start
        setattr(self.counters, name, getattr(self.counters, name) + spent)

    def now(self) -> float:
        """Seconds, after all queued GPU work."""
        return now(self.device)


def now(device: torch.device) -> float:
    """Seconds, after all work queued on a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter()
