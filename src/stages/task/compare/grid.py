"""Runs side by side: what differs between them, and what each brought."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.compare.runs import Run

_METHOD = ("draft", "verifier")
"""Parameters that plain decoding may differ in and still be the baseline."""


@dataclass(frozen=True)
class Line:
    """A run in the grid. `speedup` is over plain decoding; `measured` tells whether the run itself
    measured both, else plain decoding is another run of the grid."""

    run: Run
    varied: Mapping[str, Scalar]
    throughput: float | None
    speedup: float | None
    measured: bool


@dataclass(frozen=True)
class Grid:
    """All runs, and the names of what differs between them."""

    columns: Sequence[str]
    lines: Sequence[Line]

    @property
    def ranked(self) -> list[Line]:
        """The fastest run first, unfinished ones last."""
        return sorted(self.lines, key=lambda line: -(line.throughput or -1.0))

    @property
    def best(self) -> Line | None:
        """The fastest finished run whose output is the target's own, or of any if there is none."""
        finished = [line for line in self.ranked if line.throughput]
        exact = [line for line in finished if line.run.results.get("lossy") is not True]
        return next(iter(exact or finished), None)


def grid_of(runs: Sequence[Run]) -> Grid:
    """The grid of these runs."""
    columns = varied(runs)
    return Grid(columns, [_line(run, runs, columns) for run in runs])


def varied(runs: Sequence[Run]) -> list[str]:
    """The parameters that tell these runs apart, without those that follow from others: a plan's
    number of ranks, a draft's usual k. A run that was refused only knows what it was told."""
    kept: list[str] = []
    for key in dict.fromkeys(key for run in runs for key in run.params):
        seen: dict[tuple[Scalar, ...], set[Scalar]] = {}
        for run in runs:
            if key in run.params:
                place = tuple(run.params.get(name) for name in kept)
                seen.setdefault(place, set()).add(run.params[key])
        if any(len(values) > 1 for values in seen.values()):
            kept.append(key)
    return kept


def _line(run: Run, runs: Sequence[Run], columns: Sequence[str]) -> Line:
    throughput, own = run.number("throughput_tok_s"), run.number("speedup_vs_plain")
    speedup = own
    if own is None and throughput is not None:
        plain = next((r for r in runs if _is_baseline(r, run)), None)
        slow = None if plain is None else plain.number("throughput_tok_s")
        speedup = throughput / slow if slow else None
    chosen = {name: run.params.get(name) for name in columns}
    return Line(run, chosen, throughput, speedup, own is not None)


def _is_baseline(plain: Run, run: Run) -> bool:
    """Whether a run is plain decoding of the same model, feed-forward and plan, all else equal."""

    def rest(params: Mapping[str, Scalar]) -> dict[str, Scalar]:
        return {k: v for k, v in params.items() if k.partition(".")[0] not in _METHOD}

    return plain.params.get("draft") == "none" and rest(plain.params) == rest(run.params)
