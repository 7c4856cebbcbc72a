"""A grid on the terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from draftmesh.stages.task.compare.columns import COLUMNS, Column, cell, option, outcome, reason
from draftmesh.stages.task.compare.grid import Grid, Line

NOTE = "~ over plain decoding in another run of this table; task=bench measures both in one run"
FEWEST = 2
"""Columns of results that are shown however narrow the terminal is."""


def table(grid: Grid, title: str, console: Console) -> Table:
    """The runs, the fastest first, with as many columns as fit; the best one is bold."""
    shown = [c for c in COLUMNS if any(cell(line, c) for line in grid.lines)]
    unbounded = console.options.update(max_width=10_000)
    while True:
        found = _table(grid, title, shown)
        width = console.measure(found, options=unbounded).maximum
        if len(shown) <= FEWEST or width <= console.width:
            return found
        shown = shown[:-1]


def _table(grid: Grid, title: str, shown: Sequence[Column]) -> Table:
    found = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in grid.columns or ["run"]:
        found.add_column(name, no_wrap=True)
    for column in shown:
        found.add_column(column.heading, justify="right", no_wrap=True)
    found.add_column("output", no_wrap=True)
    for line in grid.ranked:
        cells = [*chosen(line), *(cell(line, column) for column in shown), outcome(line)]
        style = "bold" if line is grid.best else ""
        found.add_row(*(Text(text, style) for text in cells))
    return found


def chosen(line: Line) -> list[str]:
    """What distinguishes a run; its name where nothing does."""
    return [option(value) for value in line.varied.values()] or [line.run.name]


def failures(grid: Grid) -> list[str]:
    """Why runs have no result, a line each."""
    failed = [line for line in grid.lines if reason(line)]
    return [_failure(label(grid, line), outcome(line), reason(line)) for line in failed]


def _failure(name: str, how: str, why: str) -> str:
    return f"{how}: {name}" if how == why else f"{how}: {name}: {why}"


def notes(grid: Grid) -> list[str]:
    """What the table does not explain itself."""
    derived = any(line.speedup is not None and not line.measured for line in grid.lines)
    return [NOTE] if derived else []


def fastest(grid: Grid) -> list[str]:
    """The best run in a line, if there is a choice."""
    best = grid.best
    if best is None or len(grid.lines) < 2:
        return []
    return [f"Fastest: {label(grid, best)}, {best.throughput:.1f} tokens/s"]


def label(grid: Grid, line: Line) -> str:
    """A run in a few words: `draft=eagle parallel=ep4`."""
    pairs = [f"{name}={option(value)}" for name, value in line.varied.items() if value is not None]
    return " ".join(pairs) or line.run.name
