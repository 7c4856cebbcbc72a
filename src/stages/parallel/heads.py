"""Tensor parallelism of attention, by whole key/value groups."""

from typing import Any

import torch
from torch import nn

from draftmesh.stages.parallel.group import Group
from draftmesh.stages.parallel.linear import RowLinear, keep_outputs, linear_part
from draftmesh.stages.parallel.split import span, split_sizes

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")


def is_attention(module: nn.Module) -> bool:
    """Whether a module looks like attention, of whatever layout."""
    return isinstance(getattr(module, "o_proj", None), nn.Module) or any(
        isinstance(getattr(module, name, None), nn.Module)
        for name in ("qkv_proj", "query_key_value", "c_attn", "kv_b_proj")
    )


def obstacle(module: Any, group: Group) -> str | None:
    """Why a module's attention cannot be split by key/value groups; None if it can."""
    if any(linear_part(module, name) is None for name in PROJECTIONS):
        return "has no separate q, k, v and o projections"
    extra = [n for n, m in module.named_children() if isinstance(m, nn.Linear)]
    extra = [name for name in extra if name not in PROJECTIONS]
    if extra or module.o_proj.in_features != module.q_proj.out_features:
        return "has more than q, k, v and o projections, such as an output gate"
    dim = getattr(module, "head_dim", None)
    if not dim or module.q_proj.out_features % dim or module.k_proj.out_features % dim:
        return "has no uniform heads"
    queries, groups = module.q_proj.out_features // dim, module.k_proj.out_features // dim
    if queries % groups or module.v_proj.out_features != module.k_proj.out_features:
        return "has no uniform heads"
    for name in ("q_norm", "k_norm"):
        weight = getattr(getattr(module, name, None), "weight", None)
        if weight is not None and weight.numel() != dim:
            return "normalises queries and keys over all heads together"
    if groups < group.size:
        return f"has only {groups} key/value head{'s' if groups > 1 else ''}"
    return None


@torch.no_grad()
def split_attention(module: Any, group: Group) -> tuple[int, int]:
    """Keep this rank's key/value groups and their query heads, in place: (query, key/value) heads.

    `num_key_value_groups`, the queries per group, stays as it is. One all-reduce per forward, in
    the output projection.
    """
    dim = module.head_dim
    groups = module.k_proj.out_features // dim
    ratio = module.q_proj.out_features // dim // groups
    start, end = span(split_sizes(groups, group.size), group.index)
    keep_outputs(module.q_proj, start * ratio * dim, end * ratio * dim)
    for linear in (module.k_proj, module.v_proj):
        keep_outputs(linear, start * dim, end * dim)
    module.o_proj = RowLinear(module.o_proj, start * ratio * dim, end * ratio * dim, group)
    if isinstance(getattr(module, "sinks", None), nn.Parameter):
        sinks = module.sinks[start * ratio : end * ratio].clone()
        module.sinks = nn.Parameter(sinks, requires_grad=False)
    for name, share in (("num_heads", ratio), ("num_key_value_heads", 1)):
        if isinstance(getattr(module, name, None), int):
            setattr(module, name, (end - start) * share)
    return (end - start) * ratio, end - start
