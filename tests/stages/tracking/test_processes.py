import os
import subprocess
import sys

from draftmesh.stages.tracking.processes import is_alive, own_identity, process_start


def test_this_process_is_alive() -> None:
    identity = own_identity()
    assert identity["pid"] == str(os.getpid())
    assert is_alive(int(identity["pid"]), identity["pid.started"])


def test_a_reused_pid_is_another_process() -> None:
    assert not is_alive(os.getpid(), "started at another time")


def test_a_killed_process_is_gone_even_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = process_start(child.pid)
    assert started is not None
    assert is_alive(child.pid, started)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but still in the table
    assert not is_alive(child.pid, started)
    child.communicate()
    assert not is_alive(child.pid, started)
