"""Which rank failed first, and how."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from draftmesh.registry import UserError

ORDER = ("user", "error", "killed", "aftermath")


class RankError(RuntimeError):
    """A rank failed; the message names it and its error, a note holds its own traceback."""

    def __init__(self, rank: int, message: str, traceback: str = "") -> None:
        super().__init__(f"rank {rank}: {message}")
        self.rank = rank
        self.traceback = traceback
        if traceback:
            self.add_note(f"on rank {rank}:\n{traceback}")


def first_failure(folder: Path, exits: Mapping[int, int], timeout_s: float) -> Exception:
    """The error to report, from the words that ranks left in `folder` and from the exit codes that
    the launcher saw.

    A user's mistake comes first, then other errors by time, then ranks killed by a signal, and last
    those that only lost contact.
    """
    words = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    told = {word["rank"] for word in words}
    words += [_silent(rank, code) for rank, code in exits.items() if rank not in told]
    first = min(words, key=lambda word: (ORDER.index(word["kind"]), word["time"]))
    if first["kind"] == "user":
        return UserError(first["message"])
    message = first["message"]
    if first["kind"] == "aftermath":
        message += (
            f" (a collective failed: a rank was lost, or none answered for {timeout_s:g} s; "
            "see parallel.timeout_s)"
        )
    return RankError(first["rank"], message, first["traceback"])


def _silent(rank: int, code: int) -> dict[str, Any]:
    if code >= 0:
        message = f"the process ended with exit code {code}"
    else:
        name = signal.Signals(-code).name
        message = f"the process was killed by {name}"
        if -code == signal.SIGKILL:
            message += " (perhaps it ran out of memory)"
    return {"kind": "killed", "rank": rank, "time": 0.0, "message": message, "traceback": ""}
