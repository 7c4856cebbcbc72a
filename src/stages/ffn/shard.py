"""Keeping only this rank's part of the experts' weights."""

from typing import Any

import torch
from torch import Tensor, nn

from draftmesh.registry import UserError
from draftmesh.stages.ffn.weights import first_name
from draftmesh.stages.parallel.split import span, split_sizes


@torch.no_grad()
def shard_experts(module: Any, held: list[int], part: int, parts: int) -> None:
    """Keep the experts `held` and, of their inner width I, piece `part` of `parts`, in place.

    Widths are cut at multiples of 8 where that is possible, which grouped products need. The bias
    after the last projection stays on the first piece only, since the pieces are summed.
    """
    dim = 1 if module.is_transposed else 2
    width = module.down_proj.shape[dim]
    if width < parts:
        raise UserError(
            f"parallel.etp={parts}: the experts' inner width is only {width}; lower parallel.etp"
        )
    start, end = span(split_sizes(width, parts, 8), part)
    first = first_name(module)
    _keep(module, first, held, lambda w: _cut_first(module, w, start, end, 3 - dim))
    _keep(module, "down_proj", held, lambda w: w.narrow(dim, start, end - start))
    if module.has_bias:
        _keep(module, f"{first}_bias", held, lambda b: _cut_first(module, b, start, end, 1))
        _keep(module, "down_proj_bias", held, lambda b: b if part == 0 else torch.zeros_like(b))


def _cut_first(module: Any, w: Tensor, start: int, end: int, dim: int) -> Tensor:
    """Columns start..end of I from [gate; up], concatenated or interleaved, along `dim`."""
    if not module.has_gate:
        return w.narrow(dim, start, end - start)
    if not module.is_concatenated:
        return w.narrow(dim, 2 * start, 2 * (end - start))
    half = w.shape[dim] // 2
    parts = [w.narrow(dim, offset + start, end - start) for offset in (0, half)]
    return torch.cat(parts, dim)


def _keep(module: Any, name: str, held: list[int], cut: Any) -> None:
    weight: Tensor = getattr(module, name)
    mine = cut(weight[torch.tensor(held, device=weight.device)])
    setattr(module, name, nn.Parameter(mine.contiguous(), requires_grad=False))
