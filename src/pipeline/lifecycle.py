"""A run that is always closed with the status it deserves."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from draftmesh.registry.contracts.tracking import RunStatus, Scalar, Tracker

_ECHO_S = 2.0


class Interrupted(KeyboardInterrupt):
    """The run was told to stop by SIGINT, SIGTERM or SIGHUP."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)


@contextmanager
def tracked(
    tracker: Tracker,
    run_name: str,
    params: Mapping[str, Scalar],
    tags: Mapping[str, str],
    parent: str | None = None,
) -> Iterator[None]:
    """Open a run around the block: FINISHED, FAILED with the error, or KILLED by a signal."""
    with stop_signals():
        try:
            tracker.start(run_name, params, tags, parent)
            yield
        except BaseException as error:
            tracker.finish(_status(error), error)
            signum = _signal_of(error)
            if signum is not None:
                raise Interrupted(signum) from error
            raise
        tracker.finish("FINISHED")


@contextmanager
def stop_signals() -> Iterator[None]:
    """Raise Interrupted where SIGINT, SIGTERM or SIGHUP arrives.

    A launcher may pass on a signal that the terminal has already sent, so a repetition within two
    seconds is ignored; a later one ends the process at once. A SIGHUP that is ignored (nohup) stays
    ignored. Does nothing outside the main thread, where Python delivers no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first = 0.0

    def handle(signum: int, frame: FrameType | None) -> None:
        nonlocal first
        if not first:
            first = time.monotonic()
            raise Interrupted(signum)
        if time.monotonic() - first > _ECHO_S:
            signal.signal(signum, signal.SIG_DFL)
            os.kill(os.getpid(), signum)

    before = {signum: signal.signal(signum, handle) for signum in _caught()}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)


def _caught() -> list[signal.Signals]:
    caught = [signal.SIGINT, signal.SIGTERM]
    return [*caught, signal.SIGHUP] if heeds_hangup() else caught


def heeds_hangup() -> bool:
    """Whether there is a SIGHUP here and it is not ignored, as by nohup."""
    hangup = getattr(signal, "SIGHUP", None)
    return hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN


def _status(error: BaseException) -> RunStatus:
    if isinstance(error, KeyboardInterrupt) or _signal_of(error) is not None:
        return "KILLED"
    if isinstance(error, SystemExit) and not error.code:
        return "FINISHED"
    return "FAILED"


def _signal_of(error: BaseException) -> int | None:
    """The signal in torch elastic's SignalException, which is an ordinary Exception."""
    signum = getattr(error, "sigval", None)
    return int(signum) if isinstance(signum, int) else None
