"""A grid on the terminal."""

from textwrap import shorten

from rich import box
from rich.table import Table
from rich.text import Text

from draftmesh.stages.task.compare.columns import COLUMNS, cell, option, outcome
from draftmesh.stages.task.compare.grid import Grid, Line

MESSAGE = 60
"""Characters of an error that are shown; grid.csv has all."""
NOTE = "~ over plain decoding in another run of this table; task=bench measures both in one run"


def table(grid: Grid, title: str) -> Table:
    """The runs, the fastest first; the best one is bold."""
    shown = [c for c in COLUMNS if any(cell(line, c) for line in grid.lines)]
    found = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in grid.columns or ["run"]:
        found.add_column(name, no_wrap=True)
    for column in shown:
        found.add_column(column.heading, justify="right", no_wrap=True)
    found.add_column("output", overflow="fold")
    for line in grid.ranked:
        told = shorten(outcome(line), MESSAGE, placeholder=" ...")
        cells = [*chosen(line), *(cell(line, column) for column in shown), told]
        style = "bold" if line is grid.best else ""
        found.add_row(*(Text(text, style) for text in cells))
    return found


def chosen(line: Line) -> list[str]:
    """What distinguishes a run; its name where nothing does."""
    return [option(value) for value in line.varied.values()] or [line.run.name]


def notes(grid: Grid) -> list[str]:
    """What the table does not explain itself."""
    derived = any(line.speedup is not None and not line.measured for line in grid.lines)
    best = grid.best
    lines = [NOTE] if derived else []
    if best is not None and len(grid.lines) > 1:
        lines.append(f"Fastest: {label(grid, best)}, {best.throughput:.1f} tokens/s")
    return lines


def label(grid: Grid, line: Line) -> str:
    """A run in a few words: `draft=eagle parallel=ep4`."""
    pairs = [f"{name}={option(value)}" for name, value in line.varied.items()]
    return " ".join(pairs) or line.run.name
