import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

WriteRun = Callable[..., Path]


@pytest.fixture
def write_run(tmp_path) -> WriteRun:
    """A run folder as a run leaves it; without results it did not finish."""

    def write(name, params=None, results=None, overrides=(), error=None, report=False):
        folder = tmp_path / name
        (folder / "config").mkdir(parents=True)
        (folder / ".hydra").mkdir()
        (folder / ".hydra/overrides.yaml").write_text(json.dumps(list(overrides)))
        if params is not None:
            known = {"name": f"run {name}", "params": params}
            (folder / "config/params.json").write_text(json.dumps(known))
            groups = {key: {"name": value} for key, value in params.items() if "." not in key}
            (folder / "config/resolved.yaml").write_text(yaml.safe_dump(groups))
        if results is not None:
            (folder / "results.json").write_text(json.dumps(results))
        if error is not None:
            (folder / "error.txt").write_text(error + "\n")
        if report:
            (folder / "report.html").write_text("")
        return folder

    return write


@pytest.fixture
def grid_folder(write_run, tmp_path) -> Path:
    """none and eagle on two plans, and a run that was refused; job 10 comes after job 2."""
    speeds = {"none": (20.0, 10.0), "eagle": (30.0, 18.0)}
    jobs = iter((0, 1, 2, 10))
    for draft, both in speeds.items():
        for (plan, ranks), speed in zip((("single", 1), ("tp2", 2)), both, strict=True):
            params = {"model": "m", "draft": draft, "parallel": plan}
            params["draft.k"] = 0 if draft == "none" else 5
            results = {"throughput_tok_s": speed, "speedup_vs_plain": None, "exactness": "checked"}
            overrides = [f"draft={draft}", f"parallel={plan}", "tracking.folder=x" * ranks]
            write_run(f"grid/{next(jobs)}", params, results, overrides, report=True)
    refused = ["draft=medusa", "+parallel=tp2"]
    write_run("grid/11", None, None, refused, "draft=medusa: no head <for> m")
    return tmp_path / "grid"
