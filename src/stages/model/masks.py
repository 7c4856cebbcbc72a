"""Which keys each new token may attend to, built once a forward and shared by all layers."""

import torch
from torch import Tensor


def ancestors(parents: Tensor) -> Tensor:
    """parents [B, T] (-1 for the prefix) -> bool [B, T, T]: j is i or an ancestor of i.

    Repeated squaring of the parent relation: log2(depth) small products.
    """
    size = parents.shape[1]
    nodes = torch.arange(size, device=parents.device)
    reach = (parents[..., None] == nodes) | (nodes[:, None] == nodes)
    while True:
        as_float = reach.float()
        wider = (as_float @ as_float) > 0
        if torch.equal(wider, reach):
            return reach
        reach = wider


class Masks:
    """The additive attention biases of one forward, by sliding window (None is full attention).

    start [B]: the first slot written; depth [B, T] and related [B, T, T] (from `ancestors`)
    describe the T tokens written there; columns before `start` hold each row's sequence, slot =
    position. `plain` marks a forward that needs no mask as long as no window is shorter than
    `columns`: every earlier column is visible to every token and the T tokens are a causal chain.
    """

    def __init__(
        self,
        start: Tensor,
        depth: Tensor,
        related: Tensor,
        columns: int,
        plain: bool,
        uniform: bool,
    ) -> None:
        self.start = start
        self.depth = depth
        self.related = related
        self.columns = columns
        self.plain = plain
        self.uniform = uniform
        self._bias: dict[int | None, Tensor | None] = {}

    def bias(self, window: int | None, dtype: torch.dtype) -> Tensor | None:
        """Additive bias [B or 1, 1, T, columns], or None where causal attention says it all."""
        if window is not None and window >= self.columns:
            window = None
        if window not in self._bias:
            self._bias[window] = self._build(window, dtype)
        return self._bias[window]

    def _build(self, window: int | None, dtype: torch.dtype) -> Tensor | None:
        if self.plain and window is None:
            return None
        start, columns = (
            self.start[:, None, None],
            torch.arange(self.columns, device=self.start.device),
        )
        size = self.depth.shape[1]
        if self.uniform and window is None:
            related = self.related
            before = self.columns - size
            allowed = torch.cat([related.new_ones(*related.shape[:2], before), related], dim=-1)
        else:
            node = columns - start
            index = node.clamp(0, size - 1).expand(-1, size, -1)
            inside = (node >= 0) & (node < size)
            allowed = (node < 0) | (inside & self.related.gather(2, index))
            if window is not None:
                position = torch.where(
                    inside, start + self.depth[:, None].gather(2, index[:, :1]), columns
                )
                allowed = allowed & (position > start + self.depth[..., None] - window)
        bias = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
        return bias.masked_fill_(~allowed, float("-inf"))[:, None]
