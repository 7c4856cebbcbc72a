"""Expert computation by batched products on gathered weights."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.weights import ExpertWeights


@register("compute", "batched")
class Batched:
    """A batched product with each row's own weights, gathered a few rows at a time: few launches,
    for the handful of rows of a decode step on a GPU."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "batched"

    def __init__(self, config: Config) -> None:
        self.config = config

    def supports(self, module: Any) -> str | None:
        """Why it cannot run on these weights; None if it can."""
        return None

    def __call__(self, module: Any, rows: Tensor, counts: list[int]) -> Tensor:
        """rows [R, H] sorted by expert, counts [e] (sum R) -> [R, H].

        At most as many rows at a time as there are experts, so gathered weights never take more
        memory than the weights themselves.
        """
        w = ExpertWeights.of(module)
        experts = torch.arange(len(counts), device=rows.device)
        experts = experts.repeat_interleave(torch.tensor(counts, device=rows.device))
        step = max(1, len(counts))
        parts = [
            self._chunk(w, x, e) for x, e in zip(rows.split(step), experts.split(step), strict=True)
        ]
        return torch.cat(parts)

    def _chunk(self, w: ExpertWeights, rows: Tensor, experts: Tensor) -> Tensor:
        inner = torch.bmm(rows[:, None], w.outward(w.first[experts])).squeeze(1)
        if w.first_bias is not None:
            inner = inner + w.first_bias[experts]
        out = torch.bmm(w.activate(inner)[:, None], w.outward(w.down[experts])).squeeze(1)
        if w.down_bias is not None:
            out = out + w.down_bias[experts]
        return out
