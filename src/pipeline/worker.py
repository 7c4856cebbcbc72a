"""What every rank does: build the pipeline, run the task, say what it cost."""

import resource
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from draftmesh.pipeline.build import LogMetrics, Show, build_pipeline
from draftmesh.pipeline.meters import Meters
from draftmesh.pipeline.series import append_series
from draftmesh.registry import build, get
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.parallel.ranks import Mesh


@dataclass(frozen=True)
class Work:
    """A rank's orders. The run folder that counts is rank 0's. `log` and `show` reach the tracker
    and the terminal of the parent process; they are None in ranks that the launcher starts."""

    cfg: dict[str, Any]
    run_dir: Path
    log: LogMetrics | None = None
    show: Show | None = None


@dataclass(frozen=True)
class Report:
    """Rank 0's answer: the task's result and the run's facts for results.json."""

    result: RunResult
    facts: dict[str, Scalar]


def execute(work: Work, ranks: Mesh) -> Report | None:
    """Run the task on this rank; rank 0 returns the report."""
    forget_peak_memory()
    run_dir = ranks.share(work.run_dir.absolute())
    log = work.log or (lambda metrics, step: append_series(run_dir, metrics, step))
    pipeline = build_pipeline(work.cfg, run_dir, ranks, log if ranks.rank == 0 else None, work.show)
    if ranks.rank == 0:
        for note in pipeline.notes:
            print(note, file=sys.stderr)
    result: RunResult = build("task", work.cfg["task"]).run(pipeline)
    meters = ranks.gather_ranks(pipeline.meters())
    peaks = ranks.gather_ranks(peak_memory_mb())
    if meters is None or peaks is None:
        return None
    experts, facts = pipeline.ffn_facts([m.experts for m in meters])
    facts |= {**_facts(pipeline, ranks, meters, max(peaks)), **pipeline.draft_facts()}
    if experts is not None:
        result = replace(result, expert_load=experts)
    return Report(result, facts)


def _facts(pipeline: Any, ranks: Mesh, meters: list[Meters], peak_mb: float) -> dict[str, Scalar]:
    name = pipeline.spec.engine["name"]
    untimed = ("draft_ms", "predicted_speedup", "predicted_speedup_seed")
    drafts_inside = hasattr(get("engine", name), "drafts")
    return {
        **(dict.fromkeys(untimed) if drafts_inside else {}),
        "engine": name,
        "world_size": ranks.world,
        "dp": ranks.dp,
        "tp": ranks.tp,
        "ep": ranks.ep,
        "etp": ranks.etp,
        "ffn": pipeline.ffn.kind,
        "lossy": not pipeline.lossless,
        "dtype": str(pipeline.target.dtype).removeprefix("torch."),
        "device": str(pipeline.target.device),
        "threads": torch.get_num_threads(),
        "peak_mem_mb": peak_mb,
        "comm_calls": sum(m.calls for m in meters),
        "comm_bytes": sum(m.bytes for m in meters),
        "predicted_comm_bytes": sum(m.predicted_bytes for m in meters),
        "total_params": pipeline.ffn.parameters.total,
        "active_params": pipeline.ffn.parameters.active,
    }


def peak_memory_mb() -> float:
    """The process's peak memory in MiB: of the GPU if one is used, else resident."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated() / 2**20
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak_memory() -> None:
    """Begin to measure anew, where the system can: a process may run several jobs, one by one."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
