"""Time per phase of a layer, on CPU or GPU."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile

import torch

WAITING = 1000
"""Phases whose events are kept before those that are over are summed up."""


class Stopwatch:
    """Adds up seconds by name. On a GPU the stream is timed with events, without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._seconds: dict[str, float] = {}
        self._events: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Time a phase."""
        if not self._cuda:
            start = time.perf_counter()
            yield
            self._add(name, time.perf_counter() - start)
            return
        first = torch.cuda.Event(enable_timing=True)
        last = torch.cuda.Event(enable_timing=True)
        first.record()
        yield
        last.record()
        self._events.append((name, first, last))
        if len(self._events) > WAITING:
            self._sum_up()

    def seconds(self, name: str) -> float:
        """Seconds so far."""
        if self._events:
            torch.cuda.synchronize()
            self._sum_up()
        return self._seconds.get(name, 0.0)

    def reset(self) -> None:
        """Start again from zero."""
        self._seconds.clear()
        self._events.clear()

    def _sum_up(self) -> None:
        done = list(takewhile(lambda event: event[2].query(), self._events))
        for phase, first, last in done:
            self._add(phase, first.elapsed_time(last) / 1000)
        del self._events[: len(done)]

    def _add(self, name: str, seconds: float) -> None:
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds
