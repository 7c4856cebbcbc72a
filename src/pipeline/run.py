"""One run from a composed configuration to its records."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from draftmesh.pipeline.console import show_completion, show_summary
from draftmesh.pipeline.environment import available_cores, environment, tags
from draftmesh.pipeline.launch import is_leader, launch
from draftmesh.pipeline.lifecycle import tracked
from draftmesh.pipeline.multirun import multirun_in
from draftmesh.pipeline.params import run_name, run_params
from draftmesh.pipeline.report import write_report
from draftmesh.pipeline.results import Results, split, write_config, write_results
from draftmesh.pipeline.series import read_series
from draftmesh.pipeline.validate import check_options
from draftmesh.pipeline.worker import Report, Work
from draftmesh.registry import build, load_plugins
from draftmesh.registry.contracts.tracking import Tracker
from draftmesh.stages.parallel.plan import Plan
from draftmesh.stages.task.records.console import standard_output
from draftmesh.stages.task.records.files import OVERRIDES, PARAMS, WRITTEN, write_json


def run(
    cfg: dict[str, Any],
    run_dir: Path | None,
    choices: Mapping[str, str],
    multirun: Path | None = None,
) -> int:
    """Validate, launch, record; returns the exit code.

    `run_dir` is None for a process that joins a run which another one owns. `choices` are Hydra's
    {group: option}, `multirun` the folder of the multirun that this run belongs to.
    """
    load_plugins(cfg["plugins"])
    check_options(cfg)
    plan: Plan = build("parallel", cfg["parallel"]).plan
    if run_dir is None or not is_leader(plan):
        _launch(Work(cfg, Path()), plan)
        return 0
    surroundings = environment(cfg["threads"] or available_cores())
    overrides = _overrides(run_dir)
    tracker: Tracker = build("tracking", cfg["tracking"])
    name = run_name(cfg, choices)
    params = run_params(cfg, choices, _mesh(plan))
    for stale in WRITTEN:  # by an earlier run in the same folder
        (run_dir / stale).unlink(missing_ok=True)
    write_config(run_dir, cfg, overrides, surroundings)
    write_json(run_dir / PARAMS, {"name": name, "params": params})
    console = standard_output()
    parent = None if multirun is None else multirun_in(multirun).parent(cfg)
    with tracked(tracker, name, params, tags(surroundings, run_dir, overrides), parent):
        show = partial(show_completion, console) if plan.world == 1 else None
        log = tracker.log_metrics if plan.world == 1 else None
        try:
            report = _launch(Work(cfg, run_dir, log, show), plan)
        except BaseException:
            tracker.log_artifacts(run_dir)
            raise
        finally:
            for metrics, step in read_series(run_dir):
                tracker.log_metrics(metrics, step)
        assert report is not None
        results = write_results(run_dir, report.result, report.facts)
        write_report(run_dir, name, report.result, results, cfg, surroundings)
        _record(tracker, results, run_dir)
    if show is None and report.result.generation is not None:
        pieces = report.result.pieces
        for completion, parts in zip(report.result.generation.completions, pieces, strict=True):
            show_completion(console, completion, parts)
    for line in report.result.lines:
        console.print(line)
    show_summary(console, name, results, tracker.where())
    return 1 if report.result.failed else 0


def _launch(work: Work, plan: Plan) -> Report | None:
    report: Report | None = launch(
        "draftmesh.pipeline.worker:execute",
        work,
        plan,
        device=work.cfg["model"].get("device") or "cpu",
        threads=work.cfg["threads"],
        plugins=work.cfg["plugins"],
    )
    return report


def _record(tracker: Tracker, results: Results, run_dir: Path) -> None:
    metrics, labels = split(results)
    tracker.log_metrics(metrics)
    tracker.set_tags(labels)
    tracker.log_artifacts(run_dir)


def _mesh(plan: Plan) -> dict[str, int]:
    sizes = {"world_size": plan.world, "dp": plan.dp, "tp": plan.tp, "ep": plan.ep}
    return {**sizes, "etp": plan.etp}


def _overrides(run_dir: Path) -> list[str]:
    """Those of this very run; the command line of a multirun holds those of all its runs."""
    path = run_dir / OVERRIDES
    if path.exists():
        return [str(line) for line in yaml.safe_load(path.read_text(encoding="utf-8"))]
    return [argument for argument in sys.argv[1:] if "=" in argument]
