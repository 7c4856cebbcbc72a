"""The training's progress bar, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from draftmesh.stages.task.training.progress import Progress as State


@contextmanager
def training_bar(visible: bool) -> Iterator[Callable[[State, float], None]]:
    """A function to call after every step with the progress and the loss."""
    bar = Progress(
        TextColumn("training"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not (visible and sys.stderr.isatty()),
    )
    with bar:
        row = bar.add_task("training", total=1.0, note="")

        def tick(state: State, loss: float) -> None:
            note = f"loss {loss:.3f}, best acceptance length {state.best:.2f}"
            bar.update(row, completed=state.fraction, note=note)

        yield tick
