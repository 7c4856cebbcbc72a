"""Linear layers of which each rank holds a part."""

from typing import Any

import torch
from torch import Tensor, nn

from draftmesh.stages.parallel.group import Group
from draftmesh.stages.parallel.traffic import TENSOR


@torch.no_grad()
def keep_outputs(linear: nn.Linear, start: int, end: int) -> None:
    """Keep outputs start..end of a linear layer, in place (column parallel)."""
    linear.weight = _own(linear.weight[start:end])
    if linear.bias is not None:
        linear.bias = _own(linear.bias[start:end])
    linear.out_features = end - start


class RowLinear(nn.Module):
    """A linear layer with inputs start..end; outputs are summed over the group, then biased."""

    def __init__(self, linear: nn.Linear, start: int, end: int, group: Group) -> None:
        super().__init__()
        self.weight = _own(linear.weight[:, start:end])
        self.bias = linear.bias
        self.in_features, self.out_features = end - start, linear.out_features
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        """x [..., end - start] -> [..., out_features]."""
        rows, n = x.numel() // self.in_features, self.group.size
        sent = 2 * (n - 1) * rows * self.out_features * x.element_size() // n
        self.group.traffic.predict(TENSOR, sent)
        out = self.group.all_reduce(x @ self.weight.t(), TENSOR)
        return out if self.bias is None else out + self.bias


def _own(part: Tensor) -> nn.Parameter:
    return nn.Parameter(part.detach().clone(), requires_grad=False)


def linear_part(module: Any, name: str) -> nn.Linear | None:
    """A child that is a plain linear layer."""
    child = getattr(module, name, None)
    return child if type(child) is nn.Linear else None
