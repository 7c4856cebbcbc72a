"""Starting the ranks of a plan, and bringing back rank 0's result or the first failure."""

import logging
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from draftmesh.pipeline.failure import first_failure
from draftmesh.pipeline.lifecycle import heeds_hangup
from draftmesh.pipeline.rank import Job, perform, resolve, run_rank
from draftmesh.registry import UserError, load_plugins
from draftmesh.stages.parallel.plan import Plan

OUTER = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
AGENT_LOGGERS = ("torch.distributed.elastic", "torch.multiprocessing", "torchelastic-events-null")
SHUTDOWN_S = 3
RENDEZVOUS_S = 300


def launch(
    function: str,
    args: Any,
    plan: Plan,
    *,
    device: str = "cpu",
    threads: int | None = None,
    plugins: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
) -> Any:
    """Run `function` ("module:function") as function(args, ranks) on every rank of the plan.

    Returns the result on the leader (see `is_leader`) and None elsewhere. World size 1 runs in
    this process; under torchrun this process joins its ranks; otherwise the node's ranks are
    started here, and none is left when this returns or raises, or when this process dies. `args`
    and the result are pickled. `device` is auto, cpu or cuda; `threads` is for all ranks of the
    node together (None: all cores). `say` gets one-line warnings.

    Raises UserError for a rank's UserError and for too few GPUs, RankError for any other failure of
    a rank, KeyboardInterrupt at Ctrl-C; other signals go to the handler that was set before.
    """
    share = threads_per_rank(plan, threads, say)
    if under_launcher():
        return perform(_joined(function, args, plan, device, share, tuple(plugins)))
    if plan.world == 1:
        return _alone(function, args, share if threads else None, plugins)
    place = choose_device(device, plan)
    with TemporaryDirectory(prefix="draftmesh-") as folder:
        job = Job(function, args, plan, place, share, tuple(plugins), folder, os.getpid())
        return _start(job)


def is_leader(plan: Plan) -> bool:
    """Whether this process owns the run folder and the tracking: torchrun's rank 0, or node 0."""
    if under_launcher():
        return os.environ["RANK"] == "0"
    return plan.node_rank == 0


def under_launcher() -> bool:
    """Whether torchrun, or another launcher that sets its variables, started this process."""
    return all(name in os.environ for name in OUTER)


def ranks_here(plan: Plan) -> int:
    """Ranks on this node; torchrun spreads a plan over nodes that the plan does not know of."""
    own = os.environ.get("LOCAL_WORLD_SIZE") if under_launcher() else None
    return int(own) if own else plan.local_ranks


def choose_device(device: str, plan: Plan) -> str:
    """cpu or cuda for the plan's ranks on this node. Raises UserError if there are too few GPUs."""
    if device == "cpu":
        return "cpu"
    import torch

    gpus = torch.cuda.device_count()
    if device == "auto" and gpus == 0:
        return "cpu"
    ranks = ranks_here(plan)
    if gpus < ranks or not device.startswith(("auto", "cuda")):
        raise UserError(
            f"model.device={device}: {ranks} ranks need a GPU each, and there "
            f"{'is' if gpus == 1 else 'are'} {gpus}: use model.device=cpu"
        )
    return "cuda"


def threads_per_rank(plan: Plan, threads: int | None, say: Callable[[str], None]) -> int:
    """This node's cores (or `threads` of them) shared among its ranks, at least one each."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if threads is not None and not 1 <= threads <= cores:
        raise UserError(f"threads={threads}: must be from 1 to the {cores} cores of this machine")
    ranks = ranks_here(plan)
    if ranks > cores:
        say(f"{ranks} ranks share {cores} cores: this shows that a plan works, not how fast it is")
    return max(1, (threads or cores) // ranks)


def _alone(function: str, args: Any, threads: int | None, plugins: Sequence[str]) -> Any:
    import torch

    from draftmesh.stages.parallel.ranks import Solo

    if threads:
        torch.set_num_threads(threads)
    load_plugins(plugins)
    return resolve(function)(args, Solo())


def _joined(
    function: str, args: Any, plan: Plan, device: str, share: int, plugins: tuple[str, ...]
) -> Job:
    started = int(os.environ["WORLD_SIZE"])
    if started != plan.world:
        raise UserError(
            f"torchrun started {started} ranks, but the plan {plan.name} has {plan.world}: change "
            "parallel.tp or parallel.ep, or torchrun's --nproc-per-node"
        )
    return Job(function, args, plan, choose_device(device, plan), share, plugins)


def _start(job: Job) -> Any:
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    caught: signal.Signals | None = None
    with ExitStack() as stack:
        for context in (_environment(job), _handlers(), _silence()):
            stack.enter_context(context)
        try:
            results = elastic_launch(_config(job), run_rank)(job)
            return results.get(0)
        except ChildFailedError as error:
            exits = {rank: failure.exitcode for rank, failure in error.failures.items()}
            raise first_failure(Path(job.folder), exits, job.plan.timeout_s) from None
        except SignalException as error:
            caught = error.sigval
    if caught != signal.SIGINT:
        signal.raise_signal(caught)
    raise KeyboardInterrupt


def _config(job: Job) -> Any:
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.launcher.api import LaunchConfig

    plan = job.plan
    several = plan.nnodes > 1
    configs: dict[str, Any] = {"timeout": RENDEZVOUS_S}
    if several:
        configs["rank"] = plan.node_rank
    return LaunchConfig(
        min_nodes=plan.nnodes,
        max_nodes=plan.nnodes,
        nproc_per_node=plan.local_ranks,
        run_id="draftmesh" if several else uuid.uuid4().hex,
        rdzv_backend="static" if several else "c10d",
        rdzv_endpoint=(plan.rdzv_endpoint or "") if several else "localhost:0",
        rdzv_configs=configs,
        local_addr=None if several else "localhost",
        max_restarts=0,
        shutdown_timeout=SHUTDOWN_S,
        signals_to_handle=",".join(_heeded()),
        logs_specs=DefaultLogsSpecs(log_dir=str(Path(job.folder) / "logs")),
    )


def _heeded() -> list[str]:
    """SIGNALS without a SIGHUP that is ignored: the agent would heed it."""
    return [name for name in SIGNALS if name != "SIGHUP" or heeds_hangup()]


@contextmanager
def _environment(job: Job) -> Iterator[None]:
    """Variables that the ranks inherit; this process's own are as before afterwards."""
    before = dict(os.environ)
    os.environ["OMP_NUM_THREADS"] = str(job.threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    loopback = next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), None)
    if job.plan.nnodes == 1 and loopback:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _handlers() -> Iterator[None]:
    """The elastic agent sets signal handlers and leaves them set; put ours back."""
    before = {}
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None:
            before[number] = signal.getsignal(number)
    try:
        yield
    finally:
        for number, handler in before.items():
            try:
                signal.signal(number, handler)
            except ValueError:  # not the main thread: none was changed
                break


@contextmanager
def _silence() -> Iterator[None]:
    """The agent's own log lines; failures are reported by the exception."""
    loggers = [logging.getLogger(name) for name in AGENT_LOGGERS]
    quiet = logging.NullHandler()
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(quiet)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(quiet)
            logger.propagate = propagate
