"""Linear layers laid out once for the CPU's bfloat16 products, not anew at every call."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

ROWS = 4
"""Rows of the products that the layout is chosen for; others work as well."""


class PackedLinear(nn.Module):
    """A linear layer whose weight [N, H] is kept as oneDNN reads it. For inference only."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.bias = bias
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., H] -> [..., N]."""
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return out


def packable(weight: Tensor) -> bool:
    """Whether a weight gains by it: bfloat16 on a CPU for which oneDNN has such products."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.bfloat16
        and torch.backends.mkldnn.is_available()
        and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    )


def pack(module: nn.Module) -> None:
    """Replace the linear layers inside a module, where that gains anything."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and packable(child.weight):
            setattr(module, name, PackedLinear(child.weight, child.bias))
        else:
            pack(child)


def linear(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """x [..., H] -> [..., N], packed where that gains anything."""
    if packable(weight):
        return PackedLinear(weight, bias)
    return lambda x: functional.linear(x, weight, bias)
