"""The grid as one page: bars, a matrix where two options vary, and the table."""

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.compare.columns import COLUMNS, cell, option, outcome
from draftmesh.stages.task.compare.grid import Grid, Line
from draftmesh.stages.task.compare.table import chosen, failures, label, notes
from draftmesh.stages.task.records.charts import Length, length_chart
from draftmesh.stages.task.records.page import page


def plots(grid: Grid, title: str, folder: Path) -> str:
    """The page; run reports are linked relative to `folder`, where it will lie."""
    sections = [_head(grid, title), _tiles(grid), _bars(grid)]
    if len(grid.columns) == 2:
        sections.append(_matrix(grid))
    return page(title, [*sections, _table(grid, folder)])


def _head(grid: Grid, title: str) -> str:
    failed = sum(not line.throughput for line in grid.lines)
    count = "1 run" if len(grid.lines) == 1 else f"{len(grid.lines)} runs"
    count += f", {failed} without a result" if failed else ""
    varied = ", ".join(grid.columns)
    meta = f"{count}; varied: {varied}" if varied else count
    return f'<h1>{escape(title)}</h1><p class="meta">{escape(meta)}</p>'


def _tiles(grid: Grid) -> str:
    best = grid.best
    if best is None:
        return ""
    tiles = [(f"{best.throughput:.1f}", f"tokens per second: {label(grid, best)}")]
    if best.speedup is not None:
        where = "in the same run" if best.measured else "in another run"
        tiles.append((f"{best.speedup:.2f}&times;", f"over plain decoding {where}"))
    shown = (
        f'<div class="card tile"><b>{value}</b><span>{escape(text)}</span></div>'
        for value, text in tiles
    )
    return f'<div class="tiles">{"".join(shown)}</div>'


def _bars(grid: Grid) -> str:
    lines = [line for line in grid.ranked if line.throughput]
    if not lines:
        return ""
    bars = [
        Length(label(grid, line), line.throughput or 0.0, f"{line.throughput:.1f}", _hint(line))
        for line in lines
    ]
    chart = length_chart(bars, "tokens per second")
    return f'<h2>Tokens per second</h2><div class="card">{chart}</div>'


def _hint(line: Line) -> str:
    parts = [f"{c.heading} {cell(line, c)}" for c in COLUMNS if cell(line, c)]
    return ", ".join(parts)


def _matrix(grid: Grid) -> str:
    down, across = grid.columns
    rows = _values(grid, down)
    columns = _values(grid, across)
    finished = [line for line in grid.lines if line.throughput]
    speeds = {tuple(line.varied.values()): line.throughput for line in finished}
    peak = max((speed for speed in speeds.values() if speed), default=1.0)
    head = "".join(f"<th>{escape(option(value))}</th>" for value in columns)
    body = ""
    for row in rows:
        cells = "".join(_square(speeds.get((row, column)), peak) for column in columns)
        body += f"<tr><th>{escape(option(row))}</th>{cells}</tr>"
    corner = f"<th>{escape(down)} \\ {escape(across)}</th>"
    return (
        f'<h2>{escape(down)} by {escape(across)}</h2><div class="card scroll">'
        f'<table class="matrix"><tr>{corner}{head}</tr>{body}</table></div>'
    )


def _values(grid: Grid, column: str) -> Sequence[Scalar]:
    return list(dict.fromkeys(line.varied[column] for line in grid.lines))


def _square(speed: float | None, peak: float) -> str:
    if speed is None:
        return '<td class="number soft">-</td>'
    shade = f"--share: {100 * speed / peak:.0f}%"
    return f'<td class="number shaded" style="{shade}">{speed:.1f}</td>'


def _table(grid: Grid, folder: Path) -> str:
    shown = [c for c in COLUMNS if any(cell(line, c) for line in grid.lines)]
    names = [*(grid.columns or ["run"]), *(c.heading for c in shown), "output", ""]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = ""
    for line in grid.ranked:
        texts = "".join(f"<td>{escape(text)}</td>" for text in chosen(line))
        numbers = "".join(f'<td class="number">{escape(cell(line, c))}</td>' for c in shown)
        css = ' class="best"' if line is grid.best else ""
        came = f'<td class="soft">{escape(outcome(line))}</td>'
        body += f"<tr{css}>{texts}{numbers}{came}<td>{_link(line, folder)}</td></tr>"
    told = [*notes(grid), *failures(grid)]
    remarks = "".join(f'<p class="note">{escape(note)}</p>' for note in told)
    return (
        f'<h2>All runs</h2><div class="card scroll"><table class="runs"><tr>{head}</tr>{body}'
        f"</table></div>{remarks}"
    )


def _link(line: Line, folder: Path) -> str:
    report = line.run.folder / "report.html"
    if not report.exists():
        return ""
    return f'<a href="{escape(os.path.relpath(report, folder))}">report</a>'
