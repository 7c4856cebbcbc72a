"""Four runs start at once on a fresh folder and end in four ways."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from draftmesh.stages.tracking.mlflow import MlflowTracker

SCRIPT = """
import sys
from draftmesh.pipeline.lifecycle import tracked
from draftmesh.stages.tracking.mlflow import MlflowTracker

folder, ending = sys.argv[1:]
tracker = MlflowTracker(MlflowTracker.Config(folder=folder))
with tracked(tracker, ending, {"seed": 0}, {}):
    tracker.log_metrics({"before_the_end": 1.0})
    print(tracker.run_id, flush=True)
    if ending == "raise":
        raise RuntimeError("out of memory")
    if ending != "finish":
        sys.stdin.read()
"""


@dataclass
class Ended:
    """A run's process as it ended."""

    run_id: str
    code: int
    errors: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fresh") / "outputs"


@pytest.fixture(scope="module")
def ended(folder: Path) -> Iterator[dict[str, Ended]]:
    endings = {"finish": None, "raise": None, "term": signal.SIGTERM, "kill": signal.SIGKILL}
    running = {
        ending: subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(folder), ending],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for ending in endings
    }
    found = {}
    try:
        for ending, process in running.items():
            assert process.stdout is not None
            run_id = process.stdout.readline().strip()
            if endings[ending] is not None:
                process.send_signal(endings[ending])
            process.wait(180)
            assert process.stderr is not None
            found[ending] = Ended(run_id, process.returncode, process.stderr.read())
        yield found
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


def record(folder: Path, run_id: str) -> Run:
    return MlflowClient(f"sqlite:///{folder}/mlflow.db").get_run(run_id)


def test_all_four_started(ended: dict[str, Ended]) -> None:
    assert all(len(end.run_id) == 32 for end in ended.values()), ended
    assert len({end.run_id for end in ended.values()}) == 4


def test_a_run_that_ends_is_finished(folder: Path, ended: dict[str, Ended]) -> None:
    run = record(folder, ended["finish"].run_id)
    assert ended["finish"].code == 0
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {"before_the_end": 1.0}


def test_an_exception_is_failed_with_its_message(folder: Path, ended: dict[str, Ended]) -> None:
    run = record(folder, ended["raise"].run_id)
    assert ended["raise"].code == 1
    assert run.info.status == "FAILED"
    assert run.data.tags["error.type"] == "RuntimeError"
    assert run.data.tags["error.message"] == "out of memory"
    assert run.data.metrics == {"before_the_end": 1.0}


def test_sigterm_is_killed(folder: Path, ended: dict[str, Ended]) -> None:
    run = record(folder, ended["term"].run_id)
    assert ended["term"].code != 0
    assert run.info.status == "KILLED"
    assert run.data.tags["error.message"] == "SIGTERM"
    assert run.data.metrics == {"before_the_end": 1.0}


def test_a_run_killed_hard_is_marked_by_the_next_start(
    folder: Path, ended: dict[str, Ended]
) -> None:
    assert record(folder, ended["kill"].run_id).info.status == "RUNNING"
    later = MlflowTracker(MlflowTracker.Config(folder=str(folder)))
    later.start("later", {}, {})
    assert record(folder, ended["kill"].run_id).info.status == "KILLED"
    assert later.run_id is not None
    own = later.run_id
    another = MlflowTracker(MlflowTracker.Config(folder=str(folder)))
    another.start("beside it", {}, {})
    assert record(folder, own).info.status == "RUNNING"
    another.finish("FINISHED")
    later.finish("FINISHED")
