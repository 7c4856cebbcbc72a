"""Linear layers with a copy of their weight, laid out once as oneDNN's CPU products read it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from draftmesh.stages.model.memory import all_memory

ROWS = 8
"""Rows of the products that the layout is chosen for; others work as well."""

FASTER = {torch.bfloat16: range(1, 1 << 30), torch.float32: range(4, 65)}
"""Rows for which the copy is the faster one. In float32 a product of few rows only waits for the
weight, which the plain layout reads best, and one of many rows packs it for itself."""

SHARE = 8
"""Copies may take one part in so many of all memory."""


class PackedLinear(nn.Linear):
    """A linear layer that multiplies by the copy where that is faster. Gradients pass as through
    any other, and a weight that was written into is laid out anew."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        self.weight = _parameter(weight)
        self.bias = None if bias is None else _parameter(bias)  # type: ignore[assignment]
        self._lay_out()

    def _lay_out(self) -> None:
        """Make the copy anew; none where the weight has gone to another device or format."""
        gains = packable(self.weight)
        weight = self.weight.detach()
        self.state = _state(weight)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS) if gains else None
        self.rows = FASTER[weight.dtype] if gains else range(0)

    def _apply(self, *arguments: Any, **options: Any) -> Self:
        super()._apply(*arguments, **options)
        self._lay_out()
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "packed"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lay_out()

    def forward(self, x: Tensor) -> Tensor:
        """x [..., H] -> [..., N]."""
        if torch.is_grad_enabled() or x.numel() // self.in_features not in self.rows:
            return functional.linear(x, self.weight, self.bias)
        if self.state != _state(self.weight):
            self._lay_out()
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return out


def _parameter(tensor: Tensor) -> nn.Parameter:
    return tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor, requires_grad=False)


def _state(weight: Tensor) -> tuple[int, int]:
    """What changes where a weight is replaced or written into (torch counts the writes, except
    those to tensors made in inference mode and those through `.data`)."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


def packable(weight: Tensor) -> bool:
    """Whether a weight gains by it: on a CPU, in a number format that oneDNN multiplies there."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32


def pack(module: nn.Module) -> None:
    """Replace the linear layers inside a module, where that gains anything."""
    for name, child in module.named_children():
        if type(child) is nn.Linear and packable(child.weight) and not hasattr(child, "_hf_hook"):
            setattr(module, name, PackedLinear(child.weight, child.bias))
        else:
            pack(child)


@contextmanager
def plain_products(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Inside, no layer uses its copy."""
    packed = [m for module in modules for m in module.modules() if isinstance(m, PackedLinear)]
    before = [layer.rows for layer in packed]
    for layer in packed:
        layer.rows = range(0)
    try:
        yield
    finally:
        for layer, rows in zip(packed, before, strict=True):
            layer.rows = rows


def affordable(module: nn.Module, processes: int) -> bool:
    """Whether copies of all linear layers in so many processes leave the memory to others."""
    linears = (child for child in module.modules() if type(child) is nn.Linear)
    size = sum(child.weight.nbytes for child in linears)
    return processes * size * SHARE <= all_memory()


def linear(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """x [..., H] -> [..., N], packed where that gains anything."""
    if packable(weight):
        return PackedLinear(weight, bias)
    return lambda x: functional.linear(x, weight, bias)
