"""The training's own record, complete over restarts."""

import json
from pathlib import Path


def append_metrics(folder: Path, metrics: dict[str, float], step: int) -> None:
    """One line of metrics.jsonl per report."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step, **metrics}) + "\n")
