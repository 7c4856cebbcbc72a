"""results.json and what lies beside it in the run folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from draftmesh.pipeline.acceptance import write_acceptance
from draftmesh.pipeline.metrics import exact_match, speedup, summarise
from draftmesh.pipeline.prediction import predict
from draftmesh.pipeline.samples import write_samples
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.records.files import RESULTS, write_json, write_text

Results = dict[str, Scalar]
"""Flat names to values, as in results.json."""


def results_of(result: RunResult, facts: Mapping[str, Scalar]) -> Results:
    """The run's flat results: derived from its counters, then `facts` (world size, ffn, ...), then
    the task's own metrics, later ones winning."""
    derived: Results = {}
    if result.generation is not None:
        derived |= _derived(result)
    return {**derived, **facts, **result.metrics}


def write_results(run_dir: Path, result: RunResult, facts: Mapping[str, Scalar]) -> Results:
    """Write results.json, samples.jsonl, acceptance.json and .csv, expert_load.json and the task's
    documents, as far as the task made them; returns the flat results.

    Each file is written whole or not at all. Raises UserError when the folder cannot be written.
    """
    results = results_of(result, facts)
    if result.generation is not None:
        write_samples(run_dir, result.generation.completions)
        write_acceptance(run_dir, result.generation.counters)
    if result.expert_load is not None:
        write_json(run_dir / "expert_load.json", {"tokens": result.expert_load})
    for name, document in result.documents.items():
        if isinstance(document, str):
            write_text(run_dir / name, document)
        else:
            write_json(run_dir / name, document)
    write_json(run_dir / RESULTS, results)
    return results


def write_config(
    run_dir: Path, cfg: Mapping[str, Any], overrides: Sequence[str], environment: Mapping[str, Any]
) -> None:
    """config/resolved.yaml, config/overrides.yaml and environment.json, before anything is run."""
    folder = run_dir / "config"
    write_text(folder / "resolved.yaml", yaml.safe_dump(dict(cfg), sort_keys=False))
    write_text(folder / "overrides.yaml", yaml.safe_dump(list(overrides)))
    write_json(run_dir / "environment.json", dict(environment))


def split(results: Mapping[str, Scalar]) -> tuple[dict[str, float], dict[str, str]]:
    """Results for a tracker: numbers and booleans as metrics, text as tags, None left out."""
    metrics = {k: float(v) for k, v in results.items() if isinstance(v, bool | int | float)}
    tags = {k: v for k, v in results.items() if isinstance(v, str)}
    return metrics, tags


def _derived(result: RunResult) -> Results:
    assert result.generation is not None
    generation, plain = result.generation, result.plain
    metrics = summarise(generation.completions, generation.counters)
    if plain is None:
        return {
            **metrics,
            **predict(generation.counters, tree=result.tree),
            "speedup_vs_plain": None,
            "exactness": "unchecked",
            "exact_match": None,
        }
    counters = plain.counters
    step_s = counters.verify_s / counters.rounds if counters.rounds else None
    slow = summarise(plain.completions, counters)
    match = exact_match(generation.completions, plain.completions) if result.comparable else None
    return {
        **metrics,
        **predict(generation.counters, step_s, result.tree),
        "speedup_vs_plain": speedup(metrics, slow),
        "plain_throughput_tok_s": slow["throughput_tok_s"],
        "exactness": "unchecked" if match is None else "checked" if match == 1 else "diverged",
        "exact_match": match,
    }
