"""The flat numbers of a run, from its completions and counters. Nothing here is measured anew."""

import math
from collections.abc import Sequence

from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.request import Completion

Metrics = dict[str, float | None]
"""Flat names to numbers; None where a number does not apply (no decode step, no baseline)."""


def summarise(completions: Sequence[Completion], counters: Counters) -> Metrics:
    """What a method did on a set of prompts.

    - throughput_tok_s: emitted tokens per second of the loop, prefill included.
    - ttft_ms: mean over prompts, from the start of the prompt's batch to its first token.
    - tpot_ms: mean over prompts of (latency - ttft) / (tokens - 1), where there are two tokens.
    - latency_p50_ms, latency_p95_ms: percentiles over prompts, from the start of the batch.
    - acceptance_rate: accepted / drafted tokens; alpha: accepted / (accepted + first rejections).
    - mean_acceptance_length: tokens emitted per decode step of a sequence, bonus token included,
      pooled over the steps of all sequences (not a mean of means). The prefill, which emits each
      sequence's first token, is no decode step; tokens cut off at a sequence's end do not count.
    - draft_ms, verify_ms, overhead_ms: mean per decode round (one batch through the loop once);
      draft_s, verify_s, prefill_s, overhead_s, wall_s: their totals; wait_s: waiting for other
      ranks to begin a round.
    """
    new_tokens = sum(len(c.token_ids) for c in completions)
    latencies = [c.latency_s for c in completions]
    return {
        "throughput_tok_s": _ratio(new_tokens, counters.wall_s),
        "ttft_ms": _milli(_mean([c.ttft_s for c in completions])),
        "tpot_ms": _milli(_mean(_seconds_per_token(completions))),
        "latency_p50_ms": _milli(percentile(latencies, 50)),
        "latency_p95_ms": _milli(percentile(latencies, 95)),
        "new_tokens": new_tokens,
        "target_forwards": counters.target_forwards,
        "drafted_tokens": counters.drafted,
        "accepted_tokens": counters.accepted,
        "acceptance_rate": _ratio(counters.accepted, counters.drafted, empty=0.0),
        "alpha": alpha(counters),
        "mean_acceptance_length": mean_acceptance_length(completions),
        "draft_ms": _milli(_ratio(counters.draft_s, counters.rounds)),
        "verify_ms": _milli(_ratio(counters.verify_s, counters.rounds)),
        "overhead_ms": _milli(_ratio(counters.overhead_s, counters.rounds)),
        "draft_s": counters.draft_s,
        "verify_s": counters.verify_s,
        "prefill_s": counters.prefill_s,
        "wait_s": counters.wait_s,
        "overhead_s": counters.overhead_s,
        "wall_s": counters.wall_s,
    }


def alpha(counters: Counters) -> float:
    """How often a draft token that was tested stood; 0 when none was tested."""
    tested = counters.accepted + counters.first_rejections
    return counters.accepted / tested if tested else 0.0


def mean_acceptance_length(completions: Sequence[Completion]) -> float | None:
    """Tokens emitted per decode step, pooled; None when the prefills ended every sequence."""
    lengths = [length for c in completions for length in c.accept_lengths[1:]]
    return _mean(lengths)


def speedup(method: Metrics, plain: Metrics) -> float | None:
    """Throughput over that of plain decoding of the same model, ffn and plan."""
    fast, slow = method["throughput_tok_s"], plain["throughput_tok_s"]
    return fast / slow if fast is not None and slow else None


def exact_match(completions: Sequence[Completion], plain: Sequence[Completion]) -> float | None:
    """The share of prompts whose tokens equal those of plain decoding."""
    reference = {(c.request.index, c.request.turn): c.token_ids for c in plain}
    pairs = [(c.token_ids, reference.get((c.request.index, c.request.turn))) for c in completions]
    return _mean([mine == theirs for mine, theirs in pairs])


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Percentile with linear interpolation between the two nearest values."""
    if not values:
        return None
    ordered = sorted(values)
    at = (len(ordered) - 1) * percent / 100
    below, above = ordered[math.floor(at)], ordered[math.ceil(at)]
    return below + (above - below) * (at - math.floor(at))


def _seconds_per_token(completions: Sequence[Completion]) -> list[float]:
    return [
        (c.latency_s - c.ttft_s) / (len(c.token_ids) - 1)
        for c in completions
        if len(c.token_ids) > 1
    ]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(part: float, whole: float, empty: float | None = None) -> float | None:
    return part / whole if whole else empty


def _milli(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
