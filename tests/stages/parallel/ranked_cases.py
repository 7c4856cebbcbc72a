"""Whole tiny models, split over ranks and compared with the same model in one piece."""

from typing import Any

import torch
from ranked import Case
from ranked_models import MOE, tiny, tokens

from draftmesh.registry import UserError, build
from draftmesh.stages.draft.partialhead import PartialHead
from draftmesh.stages.ffn.report import summarise
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.parallel.plan import Plan
from draftmesh.stages.parallel.probe import Probe
from draftmesh.stages.parallel.ranks import form
from draftmesh.stages.parallel.tensor import shard_tensor_parallel


@torch.no_grad()
def logits_equal(
    plan: Plan, model: str, ffn: str = "auto", dtype: str = "float64", lengths: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Each data-parallel group passes its own tokens; the largest difference of its logits.

    `lengths` are the tokens of each group (padded and masked); a group may have none.
    """
    mesh = form(plan)
    whole, split = (tiny(model, getattr(torch, dtype)) for _ in range(2))
    probe = Probe(split)
    feed = build("ffn", {"name": ffn}).apply(split, mesh)
    notes = [*feed.notes, *shard_tensor_parallel(split, mesh)]
    change = probe.check("parallel")
    mesh.traffic.reset()
    ids = tokens(mesh.dp_rank, 2, 12)
    valid = torch.ones_like(ids, dtype=torch.bool)
    if lengths:
        valid = torch.arange(12).expand(2, -1) < lengths[mesh.dp_rank]
    if feed.moe is not None:
        feed.moe.reset()
        feed.moe.load.record = True
        feed.moe.context.set_valid(valid if lengths else None)
    a, b = (m(ids, use_cache=False).logits for m in (whole, split))
    # A token only sees real ones before it, so the padding behind does not matter to them.
    difference = (a - b)[valid].abs().max().item() if valid.any() else 0.0
    result = {
        "difference": difference,
        "spread": a.std().item(),
        "notes": notes,
        "change": change,
        "bytes": {name: count.bytes for name, count in mesh.traffic.counts.items()},
        "predicted": mesh.traffic.predictions,
        "calls": {name: count.calls for name, count in mesh.traffic.counts.items()},
        "parameters": sum(p.numel() for p in split.parameters()),
        "whole": sum(p.numel() for p in whole.parameters()),
        "tied": split.get_input_embeddings().weight is split.get_output_embeddings().weight,
        "valid": int(valid.sum()) if mesh.tp_rank == 0 else 0,
    }
    if feed.moe is not None:
        reports = mesh.gather_ranks(feed.moe.report())
        result["choices"] = [ids.tolist() for _, ids in feed.moe.load.choices]
        result["owners"] = feed.moe.placement.owners
        if reports:
            result["summary"] = summarise(reports, feed.moe.placement)
    return result


@torch.no_grad()
def misrouted(plan: Plan, model: str) -> str:
    """The probe's words when two experts have changed places on their way."""
    mesh = form(plan)
    split = tiny(model)
    probe = Probe(split)
    feed = build("ffn", {"name": "auto"}).apply(split, mesh)
    feed.moe.dispatcher.positions(torch.zeros(1, dtype=torch.int64))
    feed.moe.dispatcher._positions[[0, -1]] = feed.moe.dispatcher._positions[[-1, 0]]
    try:
        probe.check("parallel")
    except UserError as error:
        return str(error)
    return "accepted"


@torch.no_grad()
def rows_equal(plan: Plan, model: str) -> float:
    """Some rows of the LM head, taken from the whole model and from the split one."""
    mesh = form(plan)
    whole, split = (tiny(model) for _ in range(2))
    shard_tensor_parallel(split, mesh)
    some = torch.tensor([60, 3, 31, 30, 0])
    rows = PartialHead(HFTarget(split), some).rows
    return (rows - whole.get_output_embeddings().weight[some]).abs().max().item()


def refused(plan: Plan, model: str, ffn: str = "auto") -> str:
    """The message with which a plan is refused."""
    mesh = form(plan)
    split = tiny(model)
    try:
        build("ffn", {"name": ffn}).apply(split, mesh)
        shard_tensor_parallel(split, mesh)
    except UserError as error:
        return str(error)
    return "accepted"


def _equal(plan: Plan, model: str, **arguments: Any) -> Case:
    return Case("ranked_cases:logits_equal", plan, {"model": model, **arguments})


DISPATCHERS = ("all_to_all", "all_to_all_dedup", "allgather")
CASES: dict[int, dict[str, Case]] = {
    2: {
        **{f"ep2 {m}": _equal(Plan(ep=2), m) for m in MOE},
        **{f"tp2 {m}": _equal(Plan(tp=2, etp=2), m) for m in MOE},
        **{
            f"tp2 {m}": _equal(Plan(tp=2, etp=2), m)
            for m in ("llama", "llama_9_3", "qwen2", "qwen3", "gemma2", "phi3")
        },
        "tp2 ep2 mixtral": _equal(Plan(tp=2, ep=2), "mixtral"),
        "ep2 llama upcycled": _equal(Plan(ep=2), "llama_9_3"),
        "ep2 float32": _equal(Plan(ep=2), "gpt_oss", dtype="float32"),
        "ep2 bfloat16": _equal(Plan(ep=2), "gpt_oss", dtype="bfloat16"),
        "tp2 rows": Case("ranked_cases:rows_equal", Plan(tp=2, etp=2), {"model": "llama_9_3"}),
        "wrong route": Case("ranked_cases:misrouted", Plan(ep=2), {"model": "two_experts"}),
        "dense refused": Case(
            "ranked_cases:refused", Plan(ep=2), {"model": "llama", "ffn": "dense"}
        ),
        "moe as dense refused": Case(
            "ranked_cases:refused", Plan(ep=2), {"model": "mixtral", "ffn": "dense"}
        ),
        "unknown dispatch": Case(
            "ranked_cases:refused", Plan(ep=2, dispatch="all_two_all"), {"model": "mixtral"}
        ),
        "grouped_mm refused": Case(
            "ranked_cases:refused", Plan(ep=2, compute="grouped_mm"), {"model": "mixtral"}
        ),
    },
    3: {
        "tp3 llama_9_3": _equal(Plan(tp=3, etp=3), "llama_9_3"),
        "tp3 llama": _equal(Plan(tp=3, etp=3), "llama"),
        "ep3 qwen3_moe": _equal(Plan(ep=3), "qwen3_moe"),
        "ep3 round_robin gpt_oss": _equal(Plan(ep=3, placement="round_robin"), "gpt_oss"),
        "ep3 idle rank": _equal(Plan(ep=3), "mixtral", lengths=(5, 0, 12)),
    },
    4: {
        **{f"ep4 {m}": _equal(Plan(ep=4), m) for m in MOE},
        **{
            f"ep4 {d} padded": _equal(Plan(ep=4, dispatch=d), "qwen3_moe", lengths=(0, 7, 12, 1))
            for d in DISPATCHERS
        },
        **{
            f"ep2tp2 {d}": _equal(Plan(ep=2, tp=2, etp=2, dispatch=d), "gpt_oss", lengths=(3, 10))
            for d in DISPATCHERS
        },
        "ep2etp2 deepseek_v3": _equal(Plan(ep=2, etp=2), "deepseek_v3"),
        "etp4 mixtral": _equal(Plan(etp=4), "mixtral"),
        "tp4 ep4 qwen3_moe": _equal(Plan(tp=4, ep=4), "qwen3_moe"),
        "tp4 ep4 all_to_all": _equal(Plan(tp=4, ep=4, dispatch="all_to_all"), "olmoe"),
        "tp2 ep4 mixtral": _equal(Plan(tp=2, ep=4), "mixtral"),
        "tp4 llama_9_3": _equal(Plan(tp=4, etp=4), "llama_9_3"),
        "ep4 batched": _equal(Plan(ep=4, compute="batched"), "gpt_oss"),
        "too many ranks": Case("ranked_cases:refused", Plan(ep=4), {"model": "two_experts"}),
    },
}
