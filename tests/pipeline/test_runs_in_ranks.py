"""The command itself in several ranks: same tokens as one process, and an end when a rank dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from mlflow import MlflowClient

from draftmesh.pipeline.build import BuiltPipeline

ROOT = Path(__file__).parents[2]
OPTIONS = ["model.dtype=float64", "max_new_tokens=9", "tracking.experiment=ranks"]


def command(folder: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        str(ROOT / "run.py"),
        *OPTIONS,
        f"hydra.run.dir={folder / 'run'}",
        f"tracking.folder={folder / 'store'}",
        *options,
    ]


def run(folder: Path, *options: str) -> dict[str, list[int]]:
    done = subprocess.run(
        command(folder, *options), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (folder / "run" / "samples.jsonl").read_text().splitlines()
    return {s["id"]: s["token_ids"] for s in map(json.loads, lines)}


def only_run(folder: Path):
    client = MlflowClient(f"sqlite:///{folder / 'store' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("ranks")
    (found,) = client.search_runs([experiment.experiment_id])
    return found


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    folder = tmp_path_factory.mktemp("single")
    return run(folder, "model=tiny_mixtral", "draft=self", "data.limit=3")


def test_ep4_with_more_ranks_than_prompts(tmp_path, single):
    tokens = run(tmp_path, "model=tiny_mixtral", "draft=self", "data.limit=3", "parallel=ep4")
    assert tokens == single
    found = only_run(tmp_path)
    assert found.info.status == "FINISHED"
    assert (found.data.metrics["world_size"], found.data.metrics["ep"]) == (4, 4)
    assert found.data.metrics["comm_bytes"] == found.data.metrics["predicted_comm_bytes"] > 0


def test_ep2tp2(tmp_path, single):
    tokens = run(tmp_path, "model=tiny_mixtral", "draft=self", "data.limit=3", "parallel=ep2tp2")
    assert tokens == single


def test_torchruns_ranks_write_to_the_leaders_folder_only(tmp_path, single):
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d"]
    options = ["model=tiny_mixtral", "draft=self", "data.limit=3", "parallel=ep2"]
    python, *rest = command(tmp_path, *options, "hydra.run.dir=run")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [python, *torchrun, "--rdzv-endpoint=localhost:0", *rest],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=elsewhere,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in elsewhere.iterdir()] == ["run"]
    lines = (elsewhere / "run" / "samples.jsonl").read_text().splitlines()
    assert {s["id"]: s["token_ids"] for s in map(json.loads, lines)} == single


def test_samples_go_nowhere_where_the_leaders_folder_is_on_another_machine(tmp_path):
    for rank, folder, written in ((0, "here", 1), (1, "here", 1), (1, "elsewhere", 0)):
        (tmp_path / "here").mkdir(exist_ok=True)
        log = SimpleNamespace(append=(seen := []).append)
        ranks = SimpleNamespace(rank=rank, tp_rank=0)
        fake = SimpleNamespace(ranks=ranks, run_dir=tmp_path / folder, samples=log, show=None)
        BuiltPipeline.finished(fake, "completion")
        assert len(seen) == written


def test_a_killed_rank_ends_the_run(tmp_path):
    process = subprocess.Popen(
        command(tmp_path, "model=tiny_mixtral", "draft=none", "parallel=ep2", "max_new_tokens=400"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        rank = _wait_for_rank(process, tmp_path / "run" / "samples.jsonl")
        os.kill(rank, signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "rank" in errors
    assert only_run(tmp_path).info.status == "FAILED"
    assert not _children(process.pid)


def _wait_for_rank(process: subprocess.Popen, sign_of_life: Path) -> int:
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        workers = [pid for pid in _children(process.pid) if "spawn_main" in _command_line(pid)]
        if len(workers) == 2 and sign_of_life.exists():
            return workers[-1]
        time.sleep(0.1)
    pytest.fail("no rank began to decode")


def _children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return sorted(found)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
