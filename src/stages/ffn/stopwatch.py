"""Time per phase of a layer, on CPU or GPU."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


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

    def seconds(self, name: str) -> float:
        """Seconds so far."""
        if self._events:
            torch.cuda.synchronize()
            for phase, first, last in self._events:
                self._add(phase, first.elapsed_time(last) / 1000)
            self._events.clear()
        return self._seconds.get(name, 0.0)

    def reset(self) -> None:
        """Start again from zero."""
        self._seconds.clear()
        self._events.clear()

    def _add(self, name: str, seconds: float) -> None:
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds
