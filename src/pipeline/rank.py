"""One rank of a run: what happens inside a process that the launcher started."""

import ctypes
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from draftmesh.registry import UserError, load_plugins
from draftmesh.stages.parallel.contact import lost_contact
from draftmesh.stages.parallel.plan import Plan

PR_SET_PDEATHSIG = 1
AFTERMATH_S = 5.0


@dataclass(frozen=True)
class Job:
    """What every rank is to do, and where it leaves word of an error.

    `function` is "module:function", called as function(args, ranks). `device` is cpu or cuda (then
    each rank takes the GPU of its local rank).
    """

    function: str
    args: Any
    plan: Plan
    device: str
    threads: int
    plugins: tuple[str, ...]
    folder: str = ""
    parent: int = 0


def run_rank(job: Job) -> Any:
    """Entry point of a started process; rank 0 returns the function's result, the others None."""
    _die_with(job.parent)
    try:
        return perform(job)
    except BaseException as error:
        kind = _kind(error)
        _leave_word(Path(job.folder), kind, error)
        if kind == "aftermath":
            time.sleep(AFTERMATH_S)
        raise SystemExit(1) from None


def perform(job: Job) -> Any:
    """Join the process group, run the function, leave; also used under an outer launcher."""
    rank = int(os.environ["RANK"])
    if rank > 0:
        _hush()
    import torch

    from draftmesh.stages.parallel.ranks import connect, disconnect

    torch.set_num_threads(job.threads)
    if job.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    load_plugins(job.plugins)
    function = resolve(job.function)
    ranks = connect(job.plan, job.device)
    result = function(job.args, ranks)
    ranks.ready()
    disconnect()
    return result if rank == 0 else None


def resolve(address: str) -> Callable[..., Any]:
    """The function at "module:function"."""
    module, _, name = address.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _die_with(parent: int) -> None:
    """End this process when its parent ends, however that ends; and at Ctrl-C without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _hush() -> None:
    """Only rank 0 talks: standard output is closed, warnings and progress bars are off."""
    warnings.simplefilter("ignore")
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _kind(error: BaseException) -> str:
    """user: the user's mistake; aftermath: a collective failed, most likely because another rank
    did, which then has the first word; error: anything else."""
    if isinstance(error, UserError):
        return "user"
    return "aftermath" if lost_contact(error) else "error"


def _leave_word(folder: Path, kind: str, error: BaseException) -> None:
    word = {
        "kind": kind,
        "rank": int(os.environ["RANK"]),
        "time": time.time(),
        "message": str(error) if kind == "user" else f"{type(error).__name__}: {error}",
        "traceback": traceback.format_exc(),
    }
    path = folder / f"{word['rank']}.json"
    path.with_suffix(".part").write_text(json.dumps(word), encoding="utf-8")
    path.with_suffix(".part").replace(path)
