"""task=compare: finished runs side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.text import Text

from draftmesh.registry import UserError, register
from draftmesh.stages.task.compare.columns import record
from draftmesh.stages.task.compare.grid import Grid, grid_of
from draftmesh.stages.task.compare.plots import plots
from draftmesh.stages.task.compare.runs import find_runs, last_multirun
from draftmesh.stages.task.compare.table import failures, fastest, notes, table
from draftmesh.stages.task.records.console import standard_output
from draftmesh.stages.task.records.files import csv_text, write_json, write_text

FILES = ("grid.html", "grid.csv", "grid.json")
"""What a comparison writes."""
TITLE = "Runs compared"
OUTPUTS = Path("outputs/multirun")
WIDE = 200
"""Columns where there is no terminal to fit."""


@register("task", "compare")
class Compare:
    """A table of runs and a page of plots. Loads no model."""

    @dataclass(frozen=True)
    class Config:
        """runs: folders of runs, or folders that hold some; empty: the last multirun."""

        name: str = "compare"
        runs: list[str] = field(default_factory=list)

    def __init__(self, config: Config) -> None:
        self.config = config

    def show(self, cfg: Mapping[str, Any], run_dir: Path) -> None:
        """Print the table and write grid.csv, grid.json and grid.html to the run folder.

        Raises UserError when there is no such run.
        """
        given = [Path(run).expanduser() for run in self.config.runs]
        folders = given or [last_multirun(OUTPUTS)]
        missing = [str(folder) for folder in folders if not folder.is_dir()]
        if missing:
            raise UserError(f"task.runs: there is no folder {', '.join(missing)}")
        grid = grid_of(find_runs(folders))
        write(grid, run_dir, TITLE)
        print_grid(grid, run_dir, TITLE)


def write(grid: Grid, folder: Path, title: str) -> None:
    """Write a grid to a folder in three forms."""
    records = [record(line) for line in grid.ranked]
    page, sheet, data = (folder / name for name in FILES)
    write_text(page, plots(grid, title, folder))
    write_text(sheet, csv_text(records))
    write_json(data, records)


def print_grid(grid: Grid, folder: Path, title: str) -> None:
    """Print a grid, and where its page is."""
    page = (folder / FILES[0]).absolute()
    console = standard_output(WIDE)
    console.print(table(grid, title, console))
    for line in [*failures(grid), *notes(grid), *fastest(grid), f"Plots: {page}"]:
        console.print(Text(line), soft_wrap=True)
