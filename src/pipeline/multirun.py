"""A multirun: one run in the tracker above the others, and the grid as a table at the end."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from draftmesh.pipeline.environment import available_cores, environment, tags
from draftmesh.registry import build
from draftmesh.registry.contracts.tracking import RunStatus, Tracker
from draftmesh.stages.task.compare.compare import FILES, print_grid, write
from draftmesh.stages.task.compare.grid import Grid, grid_of
from draftmesh.stages.task.compare.runs import find_runs, is_run
from draftmesh.stages.task.compare.table import label

_STATUS: Mapping[int, RunStatus] = {0: "FINISHED", 130: "KILLED"}


class Multirun:
    """All runs of one command with -m; its folder holds theirs."""

    def __init__(self, folder: Path, overrides: Sequence[str]) -> None:
        self.folder, self.overrides = folder, list(overrides)
        self._tracker: Tracker | None = None
        self._store: dict[str, Any] = {}

    @property
    def title(self) -> str:
        """`multirun draft=none,eagle parallel=single,tp2`: the options with several values."""
        several = [text for text in self.overrides if _sweeps(text)]
        return " ".join(["multirun", *(text.lstrip("+") for text in several or self.overrides)])

    def parent(self, cfg: Mapping[str, Any]) -> str | None:
        """The id of the run above the others, opened with the first one's tracking options; None
        for runs that are recorded elsewhere."""
        store = dict(cfg["tracking"], **_unnamed(cfg))
        if self._tracker is None:
            tracker: Tracker = build("tracking", store)
            surroundings = environment(cfg["threads"] or available_cores())
            pairs = (text.lstrip("+").partition("=") for text in self.overrides)
            params = {key: value for key, _, value in pairs}
            labels = tags(surroundings, self.folder, self.overrides) | {"multirun": "true"}
            tracker.start(self.title, params, labels)
            self._tracker, self._store = tracker, store
        return self._tracker.run_id if store == self._store else None

    def close(self, code: int, jobs: Sequence[Path]) -> None:
        """Record and show the grid of the runs in these folders, and close the run above them."""
        tracker = self._tracker
        if tracker is None:
            return
        status = _STATUS.get(code, "FAILED")
        try:
            grid = grid_of(find_runs([job for job in jobs if is_run(job)]))
            write(grid, self.folder, self.title)
            tracker.log_metrics(_metrics(grid))
            if grid.best is not None:
                tracker.set_tags({"best": label(grid, grid.best)})
            for name in FILES:
                tracker.log_artifacts(self.folder / name)
        except BaseException as error:
            tracker.finish("FAILED" if isinstance(error, Exception) else "KILLED", error)
            raise
        tracker.finish(status)
        print_grid(grid, self.folder, self.title)
        if code == 130:
            print("Interrupted: a run that had not begun is not in the table", flush=True)


_open: dict[Path, Multirun] = {}


def multirun_in(folder: Path) -> Multirun:
    """The multirun of this process with that folder."""
    return _open.setdefault(folder, Multirun(folder, [a for a in sys.argv[1:] if "=" in a]))


def close_multirun(folder: Path, code: int, jobs: Sequence[Path]) -> None:
    """End it with the exit code of the whole and the folders of its runs; does nothing if no run
    was ever begun."""
    multirun = _open.pop(folder, None)
    if multirun is not None:
        multirun.close(code, jobs)


def _sweeps(override: str) -> bool:
    """Whether an override has several values: an outer comma, or one of Hydra's ranges."""
    value = override.partition("=")[2]
    outside = re.sub(r"\[[^]]*\]|\{[^}]*\}|'[^']*'|\"[^\"]*\"", "", value)
    return "," in outside or value.startswith(("range(", "choice(", "glob(", "interval("))


def _unnamed(cfg: Mapping[str, Any]) -> dict[str, None]:
    """A name given to the runs is not the name of what is above them."""
    return {"run_name": None} if "run_name" in cfg["tracking"] else {}


def _metrics(grid: Grid) -> dict[str, float]:
    found = {"runs": len(grid.lines), "failed": sum(not line.run.results for line in grid.lines)}
    best = grid.best
    if best is None:
        return dict(found)
    speeds = {"throughput_tok_s": best.throughput, "speedup_vs_plain": best.speedup}
    return found | {key: value for key, value in speeds.items() if value is not None}
