import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from draftmesh.pipeline.launch import choose_device, is_leader, launch, threads_per_rank
from draftmesh.registry import UserError
from draftmesh.stages.parallel.plan import Plan

HERE = Path(__file__).parent
TWO = Plan(ep=2)


@pytest.fixture(autouse=True)
def _cases_importable(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    # A program that is killed leaves its temporary folder behind.
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("launched")))


def quiet(line: str) -> None:
    pass


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pids: list[int], seconds: float = 15) -> bool:
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def start(case: str, plan: dict[str, object], arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "launch_main.py"), case]
    return subprocess.Popen(
        [*command, json.dumps(plan), json.dumps(arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )


def pids_in(folder: Path, count: int, seconds: float = 90) -> list[int]:
    end = time.monotonic() + seconds
    while len(found := [int(path.name) for path in folder.iterdir()]) < count:
        assert time.monotonic() < end, "the ranks did not start"
        time.sleep(0.05)
    return found


def test_one_rank_runs_in_process() -> None:
    everyone, items = launch("launch_cases:places", {"a": 1}, Plan(), say=quiet)
    assert everyone[0]["args"] == {"a": 1}
    assert everyone[0]["decided"] == [[0, 7], [True]]
    assert items == list("abcde")


def test_ranks_agree_and_bring_back_the_result(capfd: pytest.CaptureFixture[str]) -> None:
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    environment = dict(os.environ)
    everyone, items = launch("launch_cases:places", [1], TWO, threads=1, say=quiet)
    assert [mine["rank"] for mine in everyone] == [0, 1]
    for mine in everyone:
        assert mine["agreed"] == (1, 0)
        assert mine["own"] == list("bd" if mine["rank"] else "ace")
        assert mine["threads"] == 1
    assert items == list("abcde")
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert dict(os.environ) == environment
    out, err = capfd.readouterr()
    assert out == "rank 0 speaks\n"
    assert "rank 1" not in err


def test_user_error_of_a_rank_comes_back_as_one() -> None:
    with pytest.raises(UserError, match=r"^draft\.k=0: must be at least 1"):
        launch("launch_cases:raises", "user", TWO, say=quiet)


def test_error_of_a_rank_names_it_and_carries_its_traceback() -> None:
    with pytest.raises(RuntimeError, match=r"^rank 1: KeyError: 'lost'") as caught:
        launch("launch_cases:raises", "other", TWO, say=quiet)
    assert "in raises" in "".join(caught.value.__notes__)


def test_a_rank_that_never_answers_becomes_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"none answered for 2 s; see parallel\.timeout_s"):
        launch("launch_cases:hangs", None, Plan(ep=2, timeout_s=2), say=quiet)


@pytest.mark.parametrize("rank", [0, 1])
def test_killed_rank_ends_the_run(tmp_path: Path, rank: int) -> None:
    arguments = {"folder": str(tmp_path), "kill": rank}
    with pytest.raises(RuntimeError, match=f"^rank {rank}: the process was killed by SIGKILL"):
        launch("launch_cases:endures", arguments, TWO, say=quiet)
    assert gone(pids_in(tmp_path, 2))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_parent_ends(tmp_path: Path, number: signal.Signals) -> None:
    parent = start("endures", {"ep": 2}, {"folder": str(tmp_path)})
    ranks = pids_in(tmp_path, 2)
    parent.send_signal(number)
    _, err = parent.communicate(timeout=30)
    assert gone(ranks)
    assert parent.returncode == (-number if number != signal.SIGINT else -signal.SIGINT)
    assert ("KeyboardInterrupt" in err) == (number == signal.SIGINT)


def test_a_hangup_that_is_ignored_ends_nothing(tmp_path: Path) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        parent = start("waits", {"ep": 2}, {"folder": str(tmp_path)})
    finally:
        signal.signal(signal.SIGHUP, before)
    for pid in (*pids_in(tmp_path, 2), parent.pid):
        os.kill(pid, signal.SIGHUP)
    (tmp_path / "0").touch()
    out, err = parent.communicate(timeout=60)
    assert parent.returncode == 0, err
    assert out.strip() == 'RESULT "went on"'


def test_several_nodes_meet_at_the_endpoint() -> None:
    plan = {"ep": 2, "nnodes": 2, "rdzv_endpoint": f"localhost:{free_port()}"}
    nodes = [start("places", {**plan, "node_rank": rank}, "x") for rank in (1, 0)]
    (other, _), (first, err) = (node.communicate(timeout=120) for node in nodes)
    assert other.strip() == "RESULT null"
    assert "RESULT" in first, err
    everyone, items = json.loads(first.split("RESULT")[1])
    assert [mine["rank"] for mine in everyone] == [0, 1]
    assert items == list("abcde")


def test_joins_the_ranks_of_torchrun() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += [f"--master-port={free_port()}", str(HERE / "launch_main.py")]
    done = subprocess.run(
        [*command, "places", json.dumps({"ep": 2}), '"x"'],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT [")]
    assert json.loads(line.removeprefix("RESULT"))[1] == list("abcde")


def test_torchrun_with_another_number_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    assert not is_leader(Plan())
    with pytest.raises(UserError, match="torchrun started 3 ranks, but the plan ep2 has 2"):
        launch("launch_cases:places", None, TWO, say=quiet)


def test_torchrun_over_several_nodes_runs_a_part_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(6), raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert threads_per_rank(Plan(ep=4), None, quiet) == 3
    assert choose_device("cuda", Plan(ep=4)) == "cuda"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    with pytest.raises(UserError, match="3 ranks need a GPU each"):
        choose_device("cuda", Plan(ep=4))


def test_leader_is_node_0() -> None:
    assert is_leader(TWO)
    assert not is_leader(Plan(ep=2, nnodes=2, node_rank=1, rdzv_endpoint="host:1"))


def test_threads_are_shared_and_a_warning_says_when_they_are_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(6), raising=False)
    said: list[str] = []
    assert threads_per_rank(Plan(), None, said.append) == 6
    assert threads_per_rank(TWO, None, said.append) == 3
    assert threads_per_rank(TWO, 4, said.append) == 2
    assert said == []
    assert threads_per_rank(Plan(ep=8), None, said.append) == 1
    assert len(said) == 1
    assert "8 ranks share 6 cores" in said[0]
    with pytest.raises(UserError, match="threads=7"):
        threads_per_rank(TWO, 7, said.append)


def test_fewer_gpus_than_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("cpu", TWO) == "cpu"
    for device in ("auto", "cuda"):
        with pytest.raises(UserError, match=r"use model\.device=cpu"):
            choose_device(device, TWO)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("auto", TWO) == "cuda"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert choose_device("auto", TWO) == "cpu"


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port
