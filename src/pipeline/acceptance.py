"""How many draft tokens stood, per step and per position."""

import csv
import io
from dataclasses import asdict, dataclass
from pathlib import Path

from draftmesh.registry.contracts.counters import Counters
from draftmesh.stages.task.records.files import write_json, write_text


@dataclass(frozen=True)
class Position:
    """Depth `position` of the drafts (1 is the first draft token).

    offered: steps that had a draft token there after everything above it was accepted; accepted:
    steps that accepted one there. acceptance = accepted / offered; reached = accepted / all steps,
    the probability that a step's accepted path is at least this long.
    """

    position: int
    offered: int
    accepted: int
    acceptance: float
    reached: float


def positions(counters: Counters) -> list[Position]:
    """Acceptance at every depth at which a draft token was ever tested."""
    found = []
    for depth in sorted(d for d, offered in counters.offered_at.items() if offered):
        offered, accepted = counters.offered_at[depth], counters.accepted_at[depth]
        found.append(
            Position(depth + 1, offered, accepted, accepted / offered, accepted / counters.steps)
        )
    return found


def write_acceptance(run_dir: Path, counters: Counters) -> None:
    """acceptance.json (with the histogram {accepted tokens: steps}) and acceptance.csv."""
    rows = positions(counters)
    histogram = {str(n): counters.histogram[n] for n in sorted(counters.histogram)}
    write_json(
        run_dir / "acceptance.json",
        {
            "steps": counters.steps,
            "drafted": counters.drafted,
            "accepted": counters.accepted,
            "first_rejections": counters.first_rejections,
            "histogram": histogram,
            "positions": [asdict(row) for row in rows],
        },
    )
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(Position.__dataclass_fields__)
    writer.writerows(asdict(row).values() for row in rows)
    write_text(run_dir / "acceptance.csv", table.getvalue())
