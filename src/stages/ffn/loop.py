"""Expert computation one expert at a time."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.weights import ExpertWeights


@register("compute", "loop")
class Loop:
    """One matrix product per expert and projection, in any dtype: the reference."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "loop"

    def __init__(self, config: Config) -> None:
        self.config = config

    def supports(self, module: Any) -> str | None:
        """Why it cannot run on these weights; None if it can."""
        return None

    def __call__(self, module: Any, rows: Tensor, counts: list[int]) -> Tensor:
        """rows [R, H] sorted by expert, counts [e] (sum R) -> [R, H]."""
        w = ExpertWeights.of(module)
        first, down = w.outward(w.first), w.outward(w.down)
        parts: list[Tensor] = []
        for expert, part in enumerate(rows.split(counts)):
            if len(part) == 0:
                continue
            inner = w.activate(_affine(part, first[expert], w.first_bias, expert))
            parts.append(_affine(inner, down[expert], w.down_bias, expert))
        return torch.cat(parts) if parts else rows


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None, expert: int) -> Tensor:
    return x @ weight if bias is None else torch.addmm(bias[expert], x, weight)
