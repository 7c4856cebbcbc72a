"""Runs side by side: what differs between them, and what each brought."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.compare.runs import Run

_METHOD = ("draft", "verifier")
"""What plain decoding may differ in and still be the baseline."""
_ASIDE = ("tracking", "plugins", "debug", "hydra")
"""What says nothing about speed."""


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
        """The fastest finished run that is not known to differ from plain decoding, or of any if
        there is none."""
        finished = [line for line in self.ranked if line.throughput]
        exact = [line for line in finished if not _differing(line.run)]
        return next(iter(exact or finished), None)


def _differing(run: Run) -> bool:
    return run.results.get("lossy") is True or run.results.get("exactness") == "diverged"


def grid_of(runs: Sequence[Run]) -> Grid:
    """The grid of these runs."""
    columns = varied(runs)
    return Grid(columns, [_line(run, runs, columns) for run in runs])


def varied(runs: Sequence[Run]) -> list[str]:
    """The options of the command lines that tell these runs apart, else parameters that do."""
    told = dict.fromkeys(option for run in runs for option in run.overrides)
    found = [option for option in told if _top(option) not in _ASIDE and _differs(option, runs)]
    if found:
        return found
    known = dict.fromkeys(name for run in runs for name in run.params)
    return [name for name in known if _differs(name, runs)]


def _differs(option: str, runs: Sequence[Run]) -> bool:
    return len({run.chosen(option) for run in runs}) > 1  # 0 and 0.0 are one value


def _top(option: str) -> str:
    return option.partition(".")[0]


def _line(run: Run, runs: Sequence[Run], columns: Sequence[str]) -> Line:
    throughput, own = run.number("throughput_tok_s"), run.number("speedup_vs_plain")
    speedup = own
    if own is None and throughput is not None:
        plain = next((r for r in runs if _is_baseline(r, run)), None)
        slow = None if plain is None else plain.number("throughput_tok_s")
        speedup = throughput / slow if slow else None
    chosen = {name: run.chosen(name) for name in columns}
    return Line(run, chosen, throughput, speedup, own is not None)


def _is_baseline(plain: Run, run: Run) -> bool:
    """Whether a run is plain decoding on the same machine with everything else the same: model,
    feed-forward, plan, engine, prompts, threads."""
    if plain.chosen("draft") != "none" or plain.machine != run.machine:
        return False
    aside = {*_METHOD, *_ASIDE}
    mine, other = (
        {kind: node for kind, node in each.config.items() if kind not in aside}
        for each in (run, plain)
    )
    return bool(mine) and mine == other
