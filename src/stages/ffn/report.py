"""What the experts of a run did, over all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from draftmesh.stages.parallel.placement import Placement


@dataclass(frozen=True)
class MoeReport:
    """One rank's part.

    `load` [layers][experts]: tokens routed (None where another rank reports the same tokens);
    `hits`: experts with rows, per call; times in seconds.
    """

    load: list[list[int]] | None
    hits: list[int]
    dispatch_s: float
    expert_s: float
    combine_s: float


@dataclass(frozen=True)
class MoeSummary:
    """All ranks together; names as in results.json.

    `expert_load_balance` is mean over maximum of the load per rank (per expert on one rank),
    averaged over layers: 1 is even. `unique_experts_per_forward` is the average number of different
    experts that a layer's tokens needed, over calls with tokens. Times are the mean over ranks.
    """

    load: list[list[int]]
    expert_load_balance: float
    unique_experts_per_forward: float
    dispatch_ms: float
    expert_ms: float
    combine_ms: float


def summarise(reports: Sequence[MoeReport], placement: Placement) -> MoeSummary:
    """Merge the ranks' reports."""
    loads = [r.load for r in reports if r.load is not None]
    load = [
        [sum(column) for column in zip(*rows, strict=True)] for rows in zip(*loads, strict=True)
    ]
    unique = [
        total for hits in zip(*(r.hits for r in reports), strict=True) if (total := sum(hits))
    ]
    mean = 1000 / len(reports)
    return MoeSummary(
        load=load,
        expert_load_balance=_balance(load, placement),
        unique_experts_per_forward=sum(unique) / len(unique) if unique else 0.0,
        dispatch_ms=mean * sum(r.dispatch_s for r in reports),
        expert_ms=mean * sum(r.expert_s for r in reports),
        combine_ms=mean * sum(r.combine_s for r in reports),
    )


def _balance(load: list[list[int]], placement: Placement) -> float:
    shares: list[float] = []
    for layer in load:
        parts = layer
        if placement.ranks > 1:
            held = [placement.held_by(rank) for rank in range(placement.ranks)]
            parts = [sum(layer[e] for e in experts) for experts in held]
        if any(parts):
            shares.append(sum(parts) / len(parts) / max(parts))
    return sum(shares) / len(shares) if shares else 1.0
