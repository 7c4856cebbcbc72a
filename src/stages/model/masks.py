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

    committed [B]: each row's length; columns before it hold its sequence (slot = position). Behind
    it lie M uncommitted nodes at depths depth [B, M], the last T of which are the forward's tokens;
    related [B, T, M] says which nodes each token descends from (see `ancestors`). `plain` marks a
    forward that needs no mask unless a window is shorter than `columns`: every earlier column is
    visible to every token, and the tokens are a causal chain. `windows` are those that the layers
    asked for.
    """

    def __init__(
        self,
        committed: Tensor,
        depth: Tensor,
        related: Tensor,
        columns: int,
        plain: bool,
        uniform: bool,
    ) -> None:
        self.committed = committed
        self.depth = depth
        self.related = related
        self.columns = columns
        self.plain = plain
        self.uniform = uniform
        self.windows: set[int | None] = set()
        self._bias: dict[tuple[int | None, int, torch.device], Tensor | None] = {}

    def bias(
        self, window: int | None, dtype: torch.dtype, device: torch.device, groups: int = 1
    ) -> Tensor | None:
        """Additive bias [B, 1, groups * T, columns] for so many queries packed along T, or None
        where causal attention says it all. Layers may be on several devices."""
        self.windows.add(window)
        if window is not None and window >= self.columns:
            window = None
        key = window, groups, device
        if key not in self._bias:
            bias = self._build(window, dtype)
            if bias is not None:
                bias = bias.repeat(1, 1, groups, 1) if groups > 1 else bias
                bias = bias.to(device)
            self._bias[key] = bias
        return self._bias[key]

    def _build(self, window: int | None, dtype: torch.dtype) -> Tensor | None:
        if self.plain and window is None:
            return None
        if self.uniform and window is None:
            before = self.columns - self.related.shape[-1]
            prefix = self.related.new_ones(*self.related.shape[:2], before)
            allowed = torch.cat([prefix, self.related], dim=-1)
        else:
            allowed = self._by_column(window)
        bias = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
        return bias.masked_fill_(~allowed, float("-inf"))[:, None]

    def _by_column(self, window: int | None) -> Tensor:
        _, tokens, nodes = self.related.shape
        column = torch.arange(self.columns, device=self.committed.device)
        node = column - self.committed[:, None]
        inside = (node >= 0) & (node < nodes)
        index = node.clamp(0, nodes - 1)
        related = self.related.gather(2, index[:, None].expand(-1, tokens, -1))
        allowed = (node < 0)[:, None] | (inside[:, None] & related)
        if window is not None:
            key = torch.where(inside, self.committed[:, None] + self.depth.gather(1, index), column)
            query = self.committed[:, None] + self.depth[:, nodes - tokens :]
            allowed = allowed & (key[:, None] > query[..., None] - window)
        return allowed
