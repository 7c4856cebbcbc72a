"""Where a run is recorded besides its own folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

RunStatus = Literal["FINISHED", "FAILED", "KILLED"]
Scalar = str | int | float | bool | None


class Tracker(Protocol):
    """A tracking stage (kind `tracking`): `Stage(config)`; one instance per run, in the parent.

    `start` raises UserError when the store cannot be opened. After that no method raises: a failure
    to record is one warning, and the run goes on.
    """

    run_id: str | None
    """The run's id in the store; None before `start`, or where nothing is recorded."""

    def start(
        self,
        run_name: str,
        params: Mapping[str, Scalar],
        tags: Mapping[str, str],
        parent: str | None = None,
    ) -> None:
        """Open a run; `parent` is the run id of the multirun it belongs to."""
        ...

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Record values, buffered; NaN and infinities are left out and named in a tag."""
        ...

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Add tags that are only known later."""
        ...

    def log_artifacts(self, path: Path, folder: str | None = None) -> None:
        """Store a file, or what a folder holds, under `folder`."""
        ...

    def log_dataset(self, name: str, source: Path, rows: int) -> None:
        """Record the prompt file that went in: its name, path, number of prompts and digest."""
        ...

    def finish(self, status: RunStatus, error: BaseException | None = None) -> None:
        """Write what is buffered and close the run; a second call does nothing."""
        ...

    def where(self) -> str | None:
        """One line that says where the run is stored and how to look at it."""
        ...
