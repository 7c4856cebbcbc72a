"""Tensor parallelism of gated and plain MLPs."""

from typing import Any

from torch import nn

from draftmesh.stages.parallel.group import Group
from draftmesh.stages.parallel.linear import RowLinear, keep_outputs, linear_part
from draftmesh.stages.parallel.split import span, split_sizes

COLUMN = ("gate_proj", "up_proj")
ROW = "down_proj"
MULTIPLE = 8


def is_mlp(module: nn.Module) -> bool:
    """Whether a module is an MLP with up_proj, down_proj and maybe gate_proj."""
    return linear_part(module, "up_proj") is not None and linear_part(module, ROW) is not None


def split_mlp(module: Any, group: Group) -> bool:
    """Keep this rank's part of the inner width, in place; False if it is narrower than the group.

    One all-reduce per forward, in the last projection.
    """
    width = module.down_proj.in_features
    if width < group.size:
        return False
    start, end = span(split_sizes(width, group.size, MULTIPLE), group.index)
    for name in COLUMN:
        linear = linear_part(module, name)
        if linear is not None:
            keep_outputs(linear, start, end)
    module.down_proj = RowLinear(module.down_proj, start, end, group)
    return True
