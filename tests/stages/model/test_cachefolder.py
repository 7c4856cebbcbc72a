import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from draftmesh.registry import UserError
from draftmesh.stages.model.cachefolder import cache_root, ready_folder

BUILDER = Path(__file__).with_name("builder.py")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTMESH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


def build(work, out):
    assert not any(work.iterdir())
    (work / "download").write_text("x")
    (out / "weights").write_text("whole")


def refuse(work, out):
    raise AssertionError("built again")


def start(folder, seconds):
    command = [sys.executable, str(BUILDER), str(folder / "counter"), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def await_path(path):
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.05)


def test_root_is_chosen_by_environment(monkeypatch, tmp_path):
    assert cache_root() == tmp_path / "cache"
    monkeypatch.delenv("DRAFTMESH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "draftmesh"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path.home() / ".cache" / "draftmesh"


def test_a_folder_is_built_once(cache):
    folder = ready_folder("toy", build)
    assert folder == cache / "toy"
    assert (folder / "weights").read_text() == "whole"
    assert ready_folder("toy", refuse) == folder
    assert {path.name for path in cache.iterdir()} == {"toy", ".toy.lock"}


def test_a_damaged_folder_is_built_anew(cache):
    folder = ready_folder("toy", build)
    (folder / "weights").write_text("who")
    ready_folder("toy", build)
    assert (folder / "weights").read_text() == "whole"
    assert {path.name for path in cache.iterdir()} == {"toy", ".toy.lock"}


def test_a_failed_build_leaves_nothing_and_is_tried_again(cache):
    def fail(work, out):
        (out / "weights").write_text("half")
        raise UserError("no network")

    with pytest.raises(UserError, match="no network"):
        ready_folder("toy", fail)
    assert {path.name for path in cache.iterdir()} == {".toy.lock"}
    assert ready_folder("toy", build).exists()


def test_processes_that_start_at_once_build_once(tmp_path):
    processes = [start(tmp_path, 1) for _ in range(3)]
    outputs = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(set(outputs)) == 1
    assert (Path(outputs[0]) / "weights").read_text() == "whole"
    assert (tmp_path / "counter").read_text() == "built\n"


def test_a_killed_build_is_repaired_by_the_next_start(cache, tmp_path):
    process = start(tmp_path, 600)
    await_path(tmp_path / "begun")
    process.kill()
    process.communicate()
    assert any(path.name.startswith(".toy.tmp-") for path in cache.iterdir())
    assert not (cache / "toy").exists()
    assert (ready_folder("toy", build) / "weights").read_text() == "whole"
    assert {path.name for path in cache.iterdir()} == {"toy", ".toy.lock"}


def test_another_folder_s_leftovers_are_left(cache):
    stranger = cache / ".toy2.tmp-1"
    stranger.mkdir(parents=True)
    ready_folder("toy", build)
    assert stranger.exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DRAFTMESH_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"cannot fill the model cache .*set DRAFTMESH_CACHE"):
        ready_folder("toy", build)


def test_a_full_disk_is_told_before_the_build():
    with pytest.raises(UserError, match=r"MB free, .* MB needed.*set DRAFTMESH_CACHE"):
        ready_folder("toy", refuse, needs=1 << 60)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_complete_cache_may_be_read_only(cache):
    folder = ready_folder("toy", build)
    for path in (cache, folder):
        path.chmod(0o555)
    try:
        assert ready_folder("toy", refuse) == folder
    finally:
        for path in (cache, folder):
            path.chmod(0o755)
