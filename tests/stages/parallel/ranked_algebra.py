"""Collectives, agreements and dispatchers on random numbers, in several ranks."""

from typing import Any

import torch
from ranked import Case
from torch import Tensor

from draftmesh.registry import build
from draftmesh.stages.ffn.sliced import InnerSplit, OwnSlice
from draftmesh.stages.parallel.plan import Plan
from draftmesh.stages.parallel.ranks import form

HIDDEN, EXPERTS, TOP_K = 5, 7, 3
PATTERNS = ("random", "one expert", "last rank", "ragged", "one token", "no tokens")


def dispatch(plan: Plan, pattern: str) -> dict[str, float]:
    """Expert e multiplies by e + 1; the result must be x * sum of w * (e + 1)."""
    mesh = form(plan)
    placement = build("placement", {"name": plan.placement}).place(EXPERTS, mesh.ep)
    dispatcher = build("dispatch", {"name": plan.dispatch}, mesh, placement)
    if not dispatcher.replicated and mesh.etp > 1:
        dispatcher = InnerSplit(dispatcher, mesh.etp_group, len(placement.held_by(mesh.ep_rank)))
    if not dispatcher.replicated and mesh.tp > 1:
        dispatcher = OwnSlice(dispatcher, mesh.tp_group)
    x, ids, weights = _batch(pattern, mesh.dp_rank, placement.held_by(mesh.ep - 1))
    mesh.traffic.reset()
    batch = dispatcher.dispatch(x, ids, weights)
    factors = torch.tensor(placement.held_by(mesh.ep_rank)).add(1).to(x.dtype)
    factors = factors.repeat_interleave(torch.tensor(batch.counts)) / mesh.etp
    out = dispatcher.combine(batch.rows * factors[:, None], batch)
    expected = x * (weights.double() * (ids + 1)).sum(1, keepdim=True)
    return {
        "difference": (out - expected).abs().max().item() if len(x) else 0.0,
        "tokens": len(x),
        "shape": tuple(out.shape),
        "computed": sum(batch.counts),
        "bytes": mesh.traffic.total().bytes,
        "predicted": dispatcher.predicted_bytes(ids, HIDDEN * 8, weights.element_size()),
    }


def _batch(pattern: str, owner: int, last: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(owner)
    tokens = {"ragged": (0, 9, 1, 4)[owner], "one token": 1 - min(owner, 1), "no tokens": 0}
    count = tokens.get(pattern, 6)
    x = torch.randn(count, HIDDEN, generator=generator, dtype=torch.float64)
    scores = torch.rand(count, EXPERTS, generator=generator)
    if pattern == "one expert":
        scores[:, 4] = 2
    if pattern == "last rank":
        scores[:, last] += 2
    weights, ids = scores.topk(TOP_K)
    return x, ids, weights


def agreements(plan: Plan) -> dict[str, Any]:
    """What a mesh tells each rank."""
    mesh = form(plan)
    ids, flags = torch.tensor([[mesh.rank, 3]]), torch.tensor([mesh.rank % 2 == 0])
    decided = mesh.decide(ids, flags)
    owned = mesh.gather(mesh.own("abcdefg"))
    return {
        "decided": [part.tolist() for part in decided],
        "dtypes": [str(part.dtype) for part in decided],
        "agreed": mesh.agree(mesh.rank, 7 - mesh.rank),
        "own": mesh.own("abcdefg"),
        "restored": None if owned is None else mesh.restore(owned),
        "groups": [g.ranks for g in (mesh.tp_group, mesh.ep_group, mesh.etp_group)],
    }


def collectives(plan: Plan) -> dict[str, Any]:
    """Ragged gathers and scatters in every dtype that gloo knows."""
    mesh = form(plan)
    group, rank = mesh.all_group, mesh.rank
    counts = [2, 0, 1, 3]
    wrong = []
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int32):
        own = torch.full((counts[rank], 2), rank + 1, dtype=dtype)
        everyone = group.all_gather_rows(own, counts, "tensor")
        expected = torch.tensor([r + 1 for r, n in enumerate(counts) for _ in range(n)])
        if not torch.equal(everyone, expected[:, None].expand(-1, 2).to(dtype)):
            wrong.append(("gather", dtype))
        if dtype.is_floating_point:
            back = group.reduce_scatter_rows(everyone, counts, "tensor")
            if not torch.equal(back, own * 4):
                wrong.append(("scatter", dtype))
            total = group.all_reduce(torch.full((3, 2), rank, dtype=dtype), "t")
            if not torch.equal(total, torch.full((3, 2), 6, dtype=dtype)):
                wrong.append(("reduce", dtype))
    column = torch.arange(6, dtype=torch.float32).view(2, 3).t() * (rank + 1)
    gathered = group.all_gather(column, "tensor")
    if not torch.equal(gathered[2], torch.arange(6.0).view(2, 3).t() * 3):
        wrong.append(("gather", "strided"))
    empty = group.all_reduce(torch.empty(0, 4), "tensor")
    return {"wrong": [str(w) for w in wrong], "empty": tuple(empty.shape)}


def _case(pattern: str, **plan: Any) -> Case:
    return Case("ranked_algebra:dispatch", Plan(**plan), {"pattern": pattern})


MESHES: dict[str, dict[str, Any]] = {
    "ep4": {"ep": 4},
    "ep2tp2": {"ep": 2, "tp": 2, "etp": 2},
    "ep4tp2": {"ep": 4, "tp": 2},
    "ep2etp2": {"ep": 2, "etp": 2},
    "ep4 round_robin": {"ep": 4, "placement": "round_robin"},
}
DISPATCHERS = ("all_to_all", "all_to_all_dedup", "allgather")
CASES: dict[int, dict[str, Case]] = {
    4: {
        **{
            f"{dispatcher} {mesh} {pattern}": _case(pattern, dispatch=dispatcher, **options)
            for dispatcher in DISPATCHERS
            for mesh, options in MESHES.items()
            for pattern in PATTERNS
        },
        **{
            f"all_reduce {mesh} {pattern}": _case(pattern, dispatch="all_reduce", tp=4, **options)
            for mesh, options in {"ep4": {"ep": 4}, "ep2": {"ep": 2, "etp": 2}}.items()
            for pattern in PATTERNS
        },
        "agree ep2tp2": Case("ranked_algebra:agreements", Plan(ep=2, tp=2, etp=2)),
        "agree ep4": Case("ranked_algebra:agreements", Plan(ep=4)),
        "collectives": Case("ranked_algebra:collectives", Plan(ep=4)),
    }
}
