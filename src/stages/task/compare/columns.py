"""The columns of a grid's table, as text and as numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.compare.grid import Line
from draftmesh.stages.task.records.console import shorten


@dataclass(frozen=True)
class Column:
    """A result: its heading, its key in results.json, and how it is written."""

    heading: str
    key: str
    write: Callable[[float], str]


COLUMNS = (
    Column("tokens/s", "throughput_tok_s", "{:.1f}".format),
    Column("speed-up", "speedup_vs_plain", "{:.2f}x".format),
    Column("length", "mean_acceptance_length", "{:.2f}".format),
    Column("accepted", "acceptance_rate", "{:.0%}".format),
    Column("first token ms", "ttft_ms", "{:.0f}".format),
    Column("verify ms", "verify_ms", "{:.1f}".format),
    Column("draft ms", "draft_ms", "{:.1f}".format),
)
"""In the order of what people ask for."""
OPTION = 30
"""Characters of an option's value that are shown."""


def number(line: Line, column: Column) -> float | None:
    """A line's value in a column."""
    return line.speedup if column.key == "speedup_vs_plain" else line.run.number(column.key)


def cell(line: Line, column: Column) -> str:
    """The same as text, empty if there is none; a speed-up over another run is marked by ~."""
    value = number(line, column)
    if value is None:
        return ""
    mark = "" if line.measured or column.key != "speedup_vs_plain" else "~"
    return mark + column.write(value)


def outcome(line: Line) -> str:
    """Whether the output is the target's own, as far as the run tells."""
    results = line.run.results
    if not results:
        return "interrupted" if line.run.error == "interrupted" else "failed"
    if results.get("lossy") is True:
        return "lossy"
    if line.run.chosen("draft") == "none" and results.get("exactness") == "unchecked":
        return "plain"
    return str(results.get("exactness") or "")


def reason(line: Line) -> str:
    """Why there is no result; empty if there is one."""
    return "" if line.run.results else line.run.error or "it did not finish"


def option(value: Scalar) -> str:
    """A value as on the command line, cut if it is long; - where there was no such option."""
    if value is None:
        return "-"
    return shorten(str(value).lower() if isinstance(value, bool) else str(value), OPTION)


def record(line: Line) -> Mapping[str, Scalar]:
    """A line as a flat record."""
    return {
        **line.varied,
        **{column.key: number(line, column) for column in COLUMNS},
        "speedup_measured": line.measured,
        "outcome": outcome(line),
        "error": reason(line),
        "run": line.run.name,
        "folder": str(line.run.folder),
    }
