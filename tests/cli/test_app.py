import errno
import os
import signal
from pathlib import Path

import pytest

from draftmesh.cli import app
from draftmesh.registry import UserError


def test_a_run_gets_a_plain_config_and_its_own_folder(call, pipeline):
    first, second = call("draft=ngram", "draft.k=3", "hydra.job.chdir=false"), call()
    (cfg, run_dir), (_, other_dir) = pipeline.calls
    assert (first.code, second.code) == (0, 0)
    assert type(cfg) is dict
    assert cfg["draft"] == {"name": "ngram", "k": 3, "min_match": 2, "max_match": 4}
    assert "hydra" not in cfg
    assert pipeline.choices["draft"] == "eagle"
    assert "hydra/launcher" not in pipeline.choices
    assert run_dir != other_dir
    assert run_dir.is_relative_to(Path.cwd() / "outputs")
    assert first.out.splitlines()[-1] == f"Run folder: {run_dir}"


def test_run_folder_can_be_chosen(call, pipeline, tmp_path):
    call(f"hydra.run.dir={tmp_path}/mine")
    assert pipeline.calls[0][1] == tmp_path / "mine"
    assert (tmp_path / "mine/.hydra/overrides.yaml").exists()


@pytest.mark.parametrize(
    ("outcome", "code", "message"),
    [
        (1, 1, ""),
        (UserError("draft.k=0: must\nbe positive"), 2, "draft.k=0: must be positive"),
        (RuntimeError("boom\nbang"), 1, "failed: RuntimeError: boom bang (debug=true"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (130, 130, ""),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "hydra.run.dir: cannot write to /"),
    ],
)
def test_exit_codes_and_one_line(call, pipeline, outcome, code, message):
    pipeline.outcome = outcome
    result = call()
    assert result.code == code
    assert message in result.err
    assert len(result.err.splitlines()) == bool(message)
    assert ("Run folder" in result.out) == (code != 2)


def test_read_only_output_names_the_option_but_another_file_does_not(call, pipeline):
    pipeline.outcome = lambda cfg, run_dir: PermissionError(13, "denied", str(run_dir / "a.json"))
    assert call().code == 2
    pipeline.outcome = PermissionError(13, "denied", "/elsewhere/model.bin")
    assert call().code == 1


def test_output_folder_that_cannot_be_made(call, tmp_path):
    (tmp_path / "file").write_text("")
    result = call("hydra.run.dir=file/run")
    assert result.code == 2
    assert result.err.startswith("draftmesh: hydra.run.dir: cannot write to file/run")
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["hydra.run.dir=gone/a"], "hydra.run.dir"),
        (["-m", "hydra.sweep.dir=gone"], "hydra.sweep.dir"),
    ],
)
def test_so_is_one_that_the_system_says_is_not_there(call, monkeypatch, arguments, option):
    def mkdir(path, *args, **kwargs):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "gone")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    result = call(*arguments)
    assert result.code == 2
    assert result.err == f"draftmesh: {option}: cannot write to gone: No such file or directory\n"


@pytest.mark.parametrize("arguments", [[], ["parallel.nnodes=2", "parallel.node_rank=1"]])
def test_a_missing_input_is_no_output(call, pipeline, arguments):
    pipeline.outcome = FileNotFoundError(errno.ENOENT, "No such file or directory", "chats.jsonl")
    result = call("hydra.run.dir=mine", *arguments)
    assert result.code == 1
    assert "failed: FileNotFoundError" in result.err


def test_a_task_that_wrote_nothing_names_no_folder(call):
    assert "Run folder" not in call("task=list").out
    assert "Run folder" in call("draft=none").out


def test_debug_shows_the_traceback(call, pipeline):
    pipeline.outcome = RuntimeError("boom")
    assert "Traceback" in call("debug=true").err
    assert "Traceback" not in call("debug=false").err


def test_multirun_runs_every_combination_and_reports_failures(call, pipeline):
    pipeline.outcome = lambda cfg, run_dir: 1 if cfg["draft"]["name"] == "none" else 0
    result = call("-m", "draft=none,ngram", "seed=1,2")
    assert [(c["draft"]["name"], c["seed"]) for c, _ in pipeline.calls] == [
        ("none", 1),
        ("none", 2),
        ("ngram", 1),
        ("ngram", 2),
    ]
    folders = {run_dir for _, run_dir in pipeline.calls}
    assert len(folders) == 4
    (parent,) = {folder.parent for folder in folders}
    assert parent.is_relative_to(Path.cwd() / "outputs/multirun")
    assert result.out.splitlines()[-1] == f"Run folder: {parent}"
    assert result.code == 1


def test_multirun_flag_may_stand_anywhere(call, pipeline):
    assert call("draft=none", "-m", "seed=1,2").code == 0
    assert [cfg["seed"] for cfg, _ in pipeline.calls] == [1, 2]


def test_interrupt_ends_a_multirun(call, pipeline):
    pipeline.outcome = KeyboardInterrupt()
    assert call("-m", "seed=1,2").code == 130
    assert len(pipeline.calls) == 1


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_so_do_signals(call, pipeline, signum, monkeypatch):
    """As on a terminal; under nohup, or behind a shell's &, tests start with some ignored."""
    closed = []
    monkeypatch.setattr(app, "_close", lambda folder, code: closed.append(code) or code)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    pipeline.outcome = lambda cfg, run_dir: os.kill(os.getpid(), signum)
    assert call("-m", "seed=1,2").code == 130
    signal.signal(signal.SIGHUP, hangup)
    signal.signal(signal.SIGINT, interrupt)
    assert len(pipeline.calls) == 1
    assert closed == [130]


@pytest.mark.parametrize(
    "text", ["What's 2+2, please?", "a=b {c} ${d} \\${e}", '"Hi" and "bye"', "5"]
)
def test_prompt_is_taken_as_it_is(call, pipeline, text):
    assert call(f"prompt={text}").err == ""
    assert pipeline.calls[0][0]["prompt"] == text


def test_prompt_null_and_quoted(call, pipeline):
    call("prompt=null")
    call("prompt='two words'")
    assert [cfg["prompt"] for cfg, _ in pipeline.calls] == [None, "two words"]


@pytest.mark.parametrize("arguments", [[], ["parallel.nnodes=2", "parallel.node_rank=1"]])
def test_followers_compose_without_a_run_folder(call, pipeline, monkeypatch, arguments):
    if not arguments:
        for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
            monkeypatch.setenv(name, value)
    result = call("draft=none", *arguments)
    (cfg, run_dir) = pipeline.calls[0]
    assert run_dir is None
    assert cfg["draft"] == {"name": "none"}
    assert "hydra" not in cfg
    assert pipeline.choices["draft"] == "none"
    assert (result.code, result.out, result.err) == (0, "", "")
    assert os.listdir() == []


def test_rank_zero_under_torchrun_owns_the_run(call, pipeline, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    assert call().code == 0
    assert pipeline.calls[0][1] is not None
    assert call("-m", "seed=1,2").code == 2


def test_a_run_folder_says_why_the_run_ended(call, pipeline, tmp_path):
    pipeline.outcome = UserError("data.path=é: no such file")
    assert call(f"hydra.run.dir={tmp_path}/mine").code == 2
    assert (tmp_path / "mine/error.txt").read_text() == "data.path=é: no such file\n"
