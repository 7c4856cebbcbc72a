"""Which tokens of a forward are real."""

import torch
from torch import Tensor


class RoutingContext:
    """Set before each forward: padding and idle rows are never routed, sent or counted."""

    def __init__(self) -> None:
        self._rows: Tensor | None = None
        self._size = 0

    def set_valid(self, valid: Tensor | None) -> None:
        """valid [B, T] bool for the forward that follows; None: every token is real."""
        self._rows = None
        if valid is None or bool(valid.all()):
            return
        self._rows = valid.reshape(-1).nonzero().squeeze(1)
        self._size = valid.numel()

    def rows(self, hidden: Tensor) -> Tensor | None:
        """Indices of the real rows of hidden [B * T, H]; None if all are."""
        if self._rows is None:
            return None
        assert hidden.shape[0] == self._size, "the mask of real tokens is of another forward"
        return self._rows.to(hidden.device)

    @staticmethod
    def scatter(rows: Tensor, index: Tensor, length: int) -> Tensor:
        """Rows back to their places among `length`, zeros elsewhere."""
        out = torch.zeros(length, *rows.shape[1:], dtype=rows.dtype, device=rows.device)
        out[index] = rows
        return out
