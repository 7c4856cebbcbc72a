import os
import signal

import pytest

from draftmesh.pipeline.lifecycle import Interrupted, stop_signals, tracked
from draftmesh.registry.contracts.tracking import RunStatus
from draftmesh.stages.tracking.none import NoTracker


class Recorder(NoTracker):
    """Remembers how the run ended."""

    def __init__(self) -> None:
        super().__init__(NoTracker.Config())
        self.ends: list[tuple[RunStatus, str]] = []

    def finish(self, status: RunStatus, error: BaseException | None = None) -> None:
        self.ends.append((status, type(error).__name__))


class SlowToEnd(Recorder):
    """A second signal arrives while the run is being closed."""

    def finish(self, status: RunStatus, error: BaseException | None = None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        super().finish(status, error)


class SignalError(Exception):
    """As torch elastic reports a signal that its launcher received."""

    sigval = signal.SIGTERM


def test_a_block_that_ends_is_finished() -> None:
    tracker = Recorder()
    with tracked(tracker, "run", {}, {}):
        pass
    assert tracker.ends == [("FINISHED", "NoneType")]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("x"), "FAILED"),
        (SystemExit(3), "FAILED"),
        (SystemExit(0), "FINISHED"),
        (KeyboardInterrupt(), "KILLED"),
    ],
)
def test_an_error_decides_the_status_and_goes_on(error: BaseException, status: str) -> None:
    tracker = Recorder()
    with pytest.raises(type(error)), tracked(tracker, "run", {}, {}):
        raise error
    assert tracker.ends == [(status, type(error).__name__)]


def test_a_signal_that_the_launcher_caught_is_an_interruption() -> None:
    tracker = Recorder()
    with pytest.raises(Interrupted, match="SIGTERM"), tracked(tracker, "run", {}, {}):
        raise SignalError
    assert tracker.ends == [("KILLED", "SignalError")]


@pytest.fixture
def hangup_ends():
    """As on a terminal; under nohup the tests are started with it ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup_ends")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_interrupt_and_handlers_come_back(signum: signal.Signals) -> None:
    before = signal.getsignal(signum)
    tracker = Recorder()
    with pytest.raises(KeyboardInterrupt, match=signum.name), tracked(tracker, "run", {}, {}):
        os.kill(os.getpid(), signum)
    assert tracker.ends == [("KILLED", "Interrupted")]
    assert signal.getsignal(signum) is before


def test_a_repeated_signal_does_not_break_the_ending() -> None:
    tracker = SlowToEnd()
    with pytest.raises(Interrupted), tracked(tracker, "run", {}, {}):
        os.kill(os.getpid(), signal.SIGTERM)
    assert tracker.ends == [("KILLED", "Interrupted")]


def test_an_ignored_hangup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
