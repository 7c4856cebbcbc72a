"""Compose the configuration with Hydra, run the pipeline, exit with 0, 1, 2 or 130."""

import gc
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from draftmesh.cli import additions, flags, follower, local_plugins, quoting, searchpath
from draftmesh.cli.failure import guard
from draftmesh.pipeline.options import run_options
from draftmesh.registry import build, load_plugins

_codes: list[int] = []
"""Exit codes of this multirun's runs that failed."""
_jobs: list[Path] = []
"""Folders of this multirun's runs."""
SWEEP_DIR = "DRAFTMESH_SWEEP_DIR"
"""Environment variable: the multirun's folder, for the runs inside it."""


@hydra.main(version_base="1.3", config_path="pkg://draftmesh.conf", config_name="config")
def job(cfg: DictConfig) -> None:
    """One run in a folder of its own. A failure, already reported, ends the process; in a multirun
    its code is kept and the other runs go on."""
    settings = HydraConfig.get()
    run_dir = Path(settings.runtime.output_dir)
    multirun: Path | None = None
    if settings.mode is RunMode.MULTIRUN:
        multirun = Path(settings.sweep.dir).absolute()
        os.environ[SWEEP_DIR] = str(multirun)
        _jobs.append(run_dir)
    choices = dict(settings.runtime.choices)
    debug = cfg.get("debug") is True
    code = guard(lambda: execute(cfg, run_dir, choices, multirun), run_dir, debug=debug)
    if multirun:
        gc.collect()  # a model's hooks refer back to it; the next one should not stand beside it
    if code != 2 and (code or _wrote(run_dir)):
        print(f"Run folder: {run_dir}", flush=True)
    if code and multirun and code != 130:
        _codes.append(code)
    elif code:
        sys.exit(code)


def _wrote(run_dir: Path) -> bool:
    """Whether the folder holds more than Hydra's own record and an empty log."""
    return any(p.name != ".hydra" and p.stat().st_size for p in run_dir.iterdir())


def execute(
    cfg: DictConfig,
    run_dir: Path | None,
    choices: Mapping[str, str | None],
    multirun: Path | None = None,
) -> int:
    """Run the task with a resolved plain configuration; returns the exit code.

    A task with a `show` method is about the installation: it needs no model and no pipeline.
    """
    plain: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    load_plugins(run_options(plain).plugins)
    task = build("task", plain["task"])
    if hasattr(task, "show"):
        if run_dir is not None:
            task.show(plain, run_dir)
        return 0
    from draftmesh.pipeline.run import run

    groups = {group: option for group, option in choices.items() if option and "/" not in group}
    return run(plain, run_dir, groups, multirun)


def start() -> int:
    """Run what the command line asks for; returns the exit code."""
    _catch_signals()
    os.environ.pop(SWEEP_DIR, None)
    _codes.clear()
    _jobs.clear()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us instead of Hydra's own printer
    arguments = sys.argv[1:]
    sys.argv[1:] = flags.multirun_first(additions.add_plus(quoting.quote_text(arguments)))
    debug = "debug=true" in arguments
    code = guard(lambda: _start(arguments), None, debug=debug)
    code = code or next(iter(_codes), 0)
    if sweep_dir := os.environ.get(SWEEP_DIR):
        code = guard(lambda: _close(Path(sweep_dir), code), None, debug=debug)
        print(f"Run folder: {sweep_dir}", flush=True)
    return code


def _close(multirun: Path, code: int) -> int:
    from draftmesh.pipeline.multirun import close_multirun

    close_multirun(multirun, code, _jobs)
    return code


def _start(arguments: list[str]) -> int:
    flags.check_flags(arguments)
    searchpath.install()
    local_plugins.publish(arguments)
    if follower.joins_others(arguments):
        return execute(*follower.compose(sys.argv[1:]))
    job()
    return 0


def _catch_signals() -> None:
    """SIGTERM and SIGHUP end a run as Ctrl-C does; a SIGHUP that is ignored (nohup) stays so."""
    signal.signal(signal.SIGTERM, _interrupt)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_DFL:
        signal.signal(hangup, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
