"""A multirun as a user starts it, and how the run above the others ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from draftmesh.pipeline import multirun
from draftmesh.pipeline.multirun import Multirun, close_multirun, multirun_in

RUN = Path(__file__).parents[2] / "run.py"
OPTIONS = ("model=tiny_llama", "data.limit=1", "max_new_tokens=4", "threads=1")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("multirun")
    command = [sys.executable, str(RUN), "-m", "draft=none,ngram,medusa", *OPTIONS]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (grid,) = folder.glob("outputs/multirun/*/*/grid.json")
    return ended, grid.parent


def test_the_grid_is_shown_at_the_end(done):
    ended, folder = done
    assert ended.returncode == 2  # medusa has no head for this model
    assert ended.stderr.count("draftmesh: ") == ended.stderr.count("medusa: no head") == 1
    assert "Error executing" not in ended.stderr
    assert ended.stdout.splitlines()[-1] == f"Run folder: {folder}"
    table = ended.stdout[ended.stdout.index("multirun draft=none,ngram,medusa") :]
    for draft in ("none", "ngram", "medusa"):
        assert f"\n {draft} " in table
    grid = json.loads((folder / "grid.json").read_text())
    assert grid[-1]["error"].startswith("draft=medusa: no head comes with DraftMesh")
    assert (folder / "2/error.txt").read_text() == grid[-1]["error"] + "\n"
    assert all(line["speedup_vs_plain"] for line in grid[:2])


def test_every_run_knows_its_own_overrides(done):
    _, folder = done
    assert "draft=ngram" in (folder / "1/config/overrides.yaml").read_text()


def test_mlflow_holds_one_run_above_the_others(done):
    _, folder = done
    client = MlflowClient(f"sqlite:///{folder.parents[2]}/mlflow.db")
    (experiment,) = (e for e in client.search_experiments() if e.name == "draftmesh")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in runs if run.data.tags.get("multirun") == "true")
    children = [run for run in runs if run is not parent]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    assert {run.data.params["draft"]: run.info.status for run in children} == {
        "none": "FINISHED",
        "ngram": "FINISHED",
        "medusa": "FAILED",
    }
    names = {run.data.params["draft"]: run.info.run_name for run in children}
    assert all(name.startswith(draft) for draft, name in names.items())
    for run in children:
        stored = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {"config", "environment.json"} <= stored, "failed runs keep what they have"
    assert parent.info.status == "FAILED"
    assert parent.info.run_name == "multirun draft=none,ngram,medusa"
    assert parent.data.metrics["runs"] == 3
    assert parent.data.metrics["failed"] == 1
    assert parent.data.tags["best"] in ("draft=none", "draft=ngram")
    stored = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert stored == {"grid.html", "grid.csv", "grid.json"}


class Tracker:
    """Notes what it is told."""

    run_id = "parent"

    def __init__(self) -> None:
        self.told = []

    def __getattr__(self, name):
        return lambda *arguments: self.told.append((name, *arguments))


@pytest.fixture
def tracker(monkeypatch):
    found = Tracker()
    monkeypatch.setattr(multirun, "build", lambda kind, node: found)
    return found


def begun(folder):
    """The folder of a run that has begun."""
    (folder / "config").mkdir(parents=True)
    (folder / "config/params.json").write_text('{"name": "a", "params": {"draft": "none"}}')
    return folder


CFG = {"tracking": {"name": "none"}, "threads": 1}


@pytest.mark.parametrize(("code", "status"), [(0, "FINISHED"), (1, "FAILED"), (130, "KILLED")])
def test_the_parent_ends_as_the_whole_did(tmp_path, tracker, code, status):
    job = begun(tmp_path / "0")
    parent = Multirun(tmp_path, ["draft=none,ngram"])
    assert parent.parent(CFG) == "parent"
    assert parent.parent(CFG) == "parent"
    parent.close(code, [job])
    assert [call[0] for call in tracker.told].count("start") == 1
    assert tracker.told[-1] == ("finish", status)


def test_an_interrupted_grid_claims_nothing_of_runs_that_may_all_have_begun(
    tmp_path, tracker, capsys
):
    job = begun(tmp_path / "0")
    (job / "error.txt").write_text("interrupted\n")
    parent = Multirun(tmp_path, ["seed=1"])
    parent.parent(CFG)
    parent.close(130, [job])
    out = capsys.readouterr().out
    assert "Interrupted: a run that had not begun is not in the table" in out
    assert "interrupted: a\n" in out
    assert "failed" not in out


def test_a_grid_that_cannot_be_written_does_not_leave_the_parent_open(tmp_path, tracker):
    (tmp_path / "file").touch()
    parent = Multirun(tmp_path / "file", ["seed=1,2"])
    parent.parent(CFG)
    with pytest.raises(ValueError, match=r"cannot write"):
        parent.close(0, [begun(tmp_path / "0")])
    assert tracker.told[-1][:2] == ("finish", "FAILED")


def test_the_grid_has_this_multiruns_runs_only(tmp_path, tracker, capsys):
    """The folder may hold runs of an earlier one."""
    parent = Multirun(tmp_path, ["draft=none,ngram"])
    parent.parent(CFG)
    jobs = [begun(tmp_path / name) for name in ("0", "1", "2")][:2]
    (tmp_path / "list").mkdir()
    parent.close(0, [*jobs, tmp_path / "list"])
    grid = json.loads((tmp_path / "grid.json").read_text())
    assert [Path(line["folder"]).name for line in grid] == ["0", "1"]


def test_runs_recorded_elsewhere_have_no_parent(tmp_path, tracker):
    parent = Multirun(tmp_path, ["tracking.folder=a,b"])
    stores = [{"name": "mlflow", "folder": folder, "run_name": folder} for folder in "aba"]
    found = [parent.parent(CFG | {"tracking": store}) for store in stores]
    assert found == ["parent", None, "parent"]


def test_nothing_is_closed_that_was_never_begun(tmp_path, tracker):
    close_multirun(tmp_path, 0, [])
    assert multirun_in(tmp_path) is multirun_in(tmp_path)
    close_multirun(tmp_path, 0, [])
    assert tracker.told == []


@pytest.mark.parametrize(
    ("overrides", "title"),
    [
        (["draft=none,ngram", "seed=1"], "multirun draft=none,ngram"),
        (["draft.k=range(1,4)", "stop=[a,b]"], "multirun draft.k=range(1,4)"),
        (["task.steps=[1,2],[3]", "seed=0"], "multirun task.steps=[1,2],[3]"),
        (["seed=0"], "multirun seed=0"),
        (["++sampling.logit_bias={5:1.0},{}"], "multirun sampling.logit_bias={5:1.0},{}"),
    ],
)
def test_the_title_names_what_is_swept(overrides, title):
    assert Multirun(Path(), overrides).title == title
