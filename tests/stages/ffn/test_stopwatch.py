from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import torch

from draftmesh.stages.ffn import stopwatch
from draftmesh.stages.ffn.stopwatch import Stopwatch


@dataclass
class Gpu:
    """Its events are recorded 1 ms apart and over once `reached` is as far."""

    ticks: Iterator[int]
    reached: float = 0

    def event(self, enable_timing: bool) -> "Event":
        assert enable_timing
        return Event(self)

    def synchronize(self) -> None:
        self.reached = float("inf")


class Event:
    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def record(self) -> None:
        self.at = next(self.gpu.ticks)

    def query(self) -> bool:
        return self.at <= self.gpu.reached

    def elapsed_time(self, last: "Event") -> int:
        return last.at - self.at


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    fake = Gpu(count())
    monkeypatch.setattr(torch.cuda, "Event", fake.event)
    monkeypatch.setattr(torch.cuda, "synchronize", fake.synchronize)
    monkeypatch.setattr(stopwatch, "WAITING", 10)
    return fake


def waiting(clock: Any) -> int:
    return len(clock._events)


def test_phases_that_are_over_are_summed_up_and_dropped(gpu: Gpu) -> None:
    clock = Stopwatch(torch.device("cuda"))
    for number in range(25):
        with clock.measure("even" if number % 2 == 0 else "odd"):
            pass
    assert waiting(clock) == 25
    gpu.reached = 41
    with clock.measure("odd"):
        pass
    assert waiting(clock) == 26 - 21
    assert clock.seconds("even") == pytest.approx(0.013)
    assert clock.seconds("odd") == pytest.approx(0.013)
    assert waiting(clock) == 0
