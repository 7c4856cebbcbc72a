"""Expert computation by one grouped matrix product per projection."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.weights import ExpertWeights

ALIGNMENT = 16
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@register("compute", "grouped_mm")
class GroupedMM:
    """`torch.nn.functional.grouped_mm`: float32, bfloat16 or float16, strides of 16 bytes."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "grouped_mm"

    def __init__(self, config: Config) -> None:
        self.config = config

    def supports(self, module: Any) -> str | None:
        """Why it cannot run on these weights; None if it can."""
        w = ExpertWeights.of(module)
        if w.first.dtype not in DTYPES:
            return f"it has no {str(w.first.dtype).removeprefix('torch.')} kernel"
        if w.first.is_cuda and torch.cuda.get_device_capability(w.first.device) < (8, 0):
            return "it needs a GPU of compute capability 8.0"
        for width in {w.inner, *w.first.shape[1:], *w.down.shape[1:]}:
            if width * w.first.element_size() % ALIGNMENT:
                return f"a width of {width} is not a multiple of {ALIGNMENT} bytes"
        return None

    def __call__(self, module: Any, rows: Tensor, counts: list[int]) -> Tensor:
        """rows [R, H] sorted by expert, counts [e] (sum R) -> [R, H].

        The kernel leaves rows past the last group unwritten; here every row is in a group.
        """
        if len(rows) == 0:
            return rows
        w = ExpertWeights.of(module)
        sizes = torch.tensor(counts, device=rows.device)
        ends = sizes.cumsum(0, dtype=torch.int32)
        inner = F.grouped_mm(rows.contiguous(), w.outward(w.first), offs=ends)
        if w.first_bias is not None:
            inner = inner + w.first_bias.repeat_interleave(sizes, 0)
        out = F.grouped_mm(w.activate(inner).contiguous(), w.outward(w.down), offs=ends)
        if w.down_bias is not None:
            out = out + w.down_bias.repeat_interleave(sizes, 0)
        return out
