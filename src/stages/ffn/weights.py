"""One view on the weights of an experts module, whatever its layout."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class ExpertWeights:
    """The weights of a module that follows transformers' experts conventions.

    `first` is gate_up_proj [e, 2I, H] (or up_proj without a gate) and `down` [e, H, I]; with
    `transposed` the last two dimensions are swapped. Biases [e, 2I] and [e, H] or None.
    """

    module: Any
    first: Tensor
    down: Tensor
    first_bias: Tensor | None
    down_bias: Tensor | None
    transposed: bool

    @staticmethod
    def of(module: Any) -> "ExpertWeights":
        """Read them from the module."""
        first = first_name(module)
        biased = module.has_bias
        return ExpertWeights(
            module,
            getattr(module, first),
            module.down_proj,
            getattr(module, f"{first}_bias") if biased else None,
            module.down_proj_bias if biased else None,
            module.is_transposed,
        )

    @property
    def inner(self) -> int:
        """I, the experts' inner width here."""
        return self.down.shape[1 if self.transposed else 2]

    def activate(self, x: Tensor) -> Tensor:
        """The model's own gate or activation: [R, 2I] -> [R, I]."""
        out: Tensor = self.module._apply_gate(x) if self.module.has_gate else self.module.act_fn(x)
        return out

    def outward(self, which: Tensor) -> Tensor:
        """A weight [e, out, in] (transposed if need be) as [e, in, out], for x @ w."""
        return which if self.transposed else which.transpose(-2, -1)


def first_name(module: Any) -> str:
    """Name of the first projection's parameter."""
    return "gate_up_proj" if module.has_gate else "up_proj"
