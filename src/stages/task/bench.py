"""task=bench: the method and plain decoding, interleaved in one run."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from draftmesh.registry import UserError, names, register
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Completion
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.generate import warm_up
from draftmesh.stages.task.pieces import completion_pieces
from draftmesh.stages.task.records.files import csv_text
from draftmesh.stages.task.verifycost import verify_cost

Row = dict[str, Any]
PREFIX = 256


@register("task", "bench")
class Bench:
    """Speeds are only compared within a run: machines are noisy, and a ratio of two runs is not a
    speed-up. Every repeat times both sides; which one goes first alternates."""

    @dataclass(frozen=True)
    class Config:
        """repeats: how often each side is measured. baseline: measure plain decoding beside the
        method. verify_nodes: tree sizes whose verify cost is measured ([] to leave that out).
        peers: other engines whose plain decoding is measured as well, for example transformers.
        """

        name: str = "bench"
        repeats: int = 3
        baseline: bool = True
        verify_nodes: list[int] = field(default_factory=lambda: [2, 4, 6, 8, 16, 32])
        peers: list[str] = field(default_factory=list)

    def __init__(self, config: Config) -> None:
        if config.repeats < 1:
            raise UserError(f"task.repeats={config.repeats}: must be at least 1")
        if any(size < 1 for size in config.verify_nodes):
            raise UserError(f"task.verify_nodes={config.verify_nodes}: sizes must be at least 1")
        unknown = [peer for peer in config.peers if peer not in names("engine")]
        if unknown:
            known = ", ".join(names("engine"))
            raise UserError(f"task.peers={config.peers}: there is no {unknown[0]}; known: {known}")
        self.config = config

    def run(self, pipeline: Pipeline) -> RunResult:
        """Warm up, measure in turn, keep every repeat; the medians are the result."""
        requests = pipeline.requests()
        sides = {"method": pipeline.engine}
        if self.config.baseline:
            sides["plain"] = pipeline.plain
        sides |= {peer: pipeline.peer(peer) for peer in self.config.peers}
        for engine in sides.values():
            warm_up(pipeline, engine, requests)
        done: dict[str, list[Generation]] = {name: [] for name in sides}
        for repeat in range(self.config.repeats):
            order = list(sides) if repeat % 2 == 0 else list(reversed(sides))
            for name in order:
                told = (name, repeat) == ("method", 0)
                pipeline.reset_meters()
                finished = pipeline.finished if told else _ignore
                done[name].append(pipeline.converse(sides[name], requests, finished))
                if told:
                    pipeline.keep_meters()
        rows = [
            {"repeat": i, "side": name, **_row(run)}
            for name, runs in done.items()
            for i, run in enumerate(runs)
        ]
        costs = self._costs(pipeline)
        generation = _middle(done["method"])
        plain = _middle(done["plain"]) if self.config.baseline else None
        return RunResult(
            generation=generation,
            plain=plain,
            comparable=pipeline.comparable,
            tree=pipeline.branching,
            pieces=completion_pieces(pipeline.checkpoint.tokenizer, generation.completions),
            metrics=_metrics(done, costs) | _peer_metrics(done, self.config.peers),
            documents={
                "bench.csv": csv_text(rows),
                "bench.json": {
                    "repeats": rows,
                    "by_category": by_category(generation.completions),
                    "verify_cost": costs,
                },
            },
            lines=[*_category_lines(generation.completions), *_cost_lines(costs)],
        )

    def _costs(self, pipeline: Pipeline) -> dict[int, float]:
        target = pipeline.target
        prefix = min(PREFIX, target.context // 2)
        sizes = [size for size in self.config.verify_nodes if prefix + size <= target.context]
        return verify_cost(target, sizes, prefix) if sizes and target.speculative else {}


def _ignore(completion: Completion) -> None:
    pass


def _tokens_per_s(run: Generation) -> float:
    return sum(len(c.token_ids) for c in run.completions) / run.seconds


def _decode_tokens_per_s(run: Generation) -> float:
    counters = run.counters
    seconds = counters.draft_s + counters.verify_s + counters.overhead_s
    return counters.emitted / seconds if seconds else 0.0


def _middle(runs: Sequence[Generation]) -> Generation:
    """The run with the median speed (the slower of two)."""
    return sorted(runs, key=_tokens_per_s)[(len(runs) - 1) // 2]


def _metrics(done: dict[str, list[Generation]], costs: dict[int, float]) -> dict[str, float]:
    metrics = {f"verify_cost_{size}": cost for size, cost in costs.items()}
    speeds = [_tokens_per_s(run) for run in done["method"]]
    metrics["throughput_tok_s_min"], metrics["throughput_tok_s_max"] = min(speeds), max(speeds)
    metrics["throughput_tok_s"] = median(speeds)
    metrics["decode_tok_s"] = median(map(_decode_tokens_per_s, done["method"]))
    if "plain" not in done:
        return metrics
    pairs = list(zip(done["method"], done["plain"], strict=True))
    ratios = [_tokens_per_s(m) / _tokens_per_s(p) for m, p in pairs]
    metrics["plain_throughput_tok_s"] = median(map(_tokens_per_s, done["plain"]))
    metrics["speedup_vs_plain"] = median(ratios)
    metrics["speedup_min"], metrics["speedup_max"] = min(ratios), max(ratios)
    decode = [_decode_tokens_per_s(m) / max(_decode_tokens_per_s(p), 1e-9) for m, p in pairs]
    metrics["decode_speedup"] = median(decode)
    shares = [
        (m.counters.overhead_s / m.counters.rounds) / (p.counters.verify_s / p.counters.rounds)
        for m, p in pairs
        if m.counters.rounds and p.counters.rounds
    ]
    if shares:
        metrics["overhead_share"] = median(shares)
    return metrics


def _peer_metrics(done: dict[str, list[Generation]], peers: Sequence[str]) -> dict[str, float]:
    """Speeds of other engines' plain decoding, and how much faster the method and our own are."""
    metrics: dict[str, float] = {}
    for peer in peers:
        theirs = [_tokens_per_s(run) for run in done[peer]]
        metrics[f"{peer}_throughput_tok_s"] = median(theirs)
        for side in ("method", "plain"):
            ours = [_tokens_per_s(run) for run in done.get(side, [])]
            if ours:
                ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
                metrics[f"{side}_vs_{peer}"] = median(ratios)
    return metrics


def _row(run: Generation) -> Row:
    counters = run.counters
    rounds = max(counters.rounds, 1)
    return {
        "tokens": sum(len(c.token_ids) for c in run.completions),
        "seconds": run.seconds,
        "throughput_tok_s": _tokens_per_s(run),
        "decode_tok_s": _decode_tokens_per_s(run),
        "mean_acceptance_length": counters.emitted / max(counters.steps, 1),
        "acceptance_rate": counters.accepted / max(counters.drafted, 1),
        "draft_ms": 1e3 * counters.draft_s / rounds,
        "verify_ms": 1e3 * counters.verify_s / rounds,
        "overhead_ms": 1e3 * counters.overhead_s / rounds,
        "prefill_s": counters.prefill_s,
    }


def by_category(completions: Sequence[Completion]) -> dict[str, dict[str, float]]:
    """Mean acceptance length (bonus included, prefill step excluded) per prompt category."""
    lengths: dict[str, list[int]] = defaultdict(list)
    prompts: dict[str, int] = defaultdict(int)
    for completion in completions:
        category = completion.request.category or "all"
        prompts[category] += 1
        lengths[category] += completion.accept_lengths[1:]
    return {
        category: {
            "prompts": prompts[category],
            "mean_acceptance_length": sum(steps) / len(steps) if steps else 0.0,
        }
        for category, steps in sorted(lengths.items())
    }


def _category_lines(completions: Sequence[Completion]) -> list[str]:
    table = by_category(completions)
    if len(table) < 2:
        return []
    head = "mean acceptance length by category"
    return [
        head,
        *(
            f"  {name:<24} {line['mean_acceptance_length']:.2f}  ({_prompts(line['prompts'])})"
            for name, line in table.items()
        ),
    ]


def _prompts(count: float) -> str:
    return "1 prompt" if count == 1 else f"{count:.0f} prompts"


def _cost_lines(costs: dict[int, float]) -> list[str]:
    if not costs:
        return []
    parts = ", ".join(f"{size}: {cost:.2f}" for size, cost in costs.items())
    return [f"cost of verifying t tokens in single-token forwards: {parts}"]
