"""Metrics over time from ranks that cannot reach the tracker: a file of the run folder."""

import json
from collections.abc import Iterator
from pathlib import Path

from draftmesh.stages.task.records.files import SERIES


def append_series(run_dir: Path, metrics: dict[str, float], step: int | None) -> None:
    """Add one line."""
    with (run_dir / SERIES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step, **metrics}) + "\n")


def read_series(run_dir: Path) -> Iterator[tuple[dict[str, float], int | None]]:
    """The lines so far, as (metrics, step)."""
    path = run_dir / SERIES
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            metrics = json.loads(line)
            step = metrics.pop("step")
            yield metrics, step
