"""The head's own key/value slots."""

import torch
from torch import Tensor
from torch.nn import functional

from draftmesh.stages.draft.eagle.config import HeadConfig


class HeadCache:
    """Keys and values [B, kv_heads, capacity, D] of the pairs seen so far, one length per row.

    `write` puts T entries behind each row's length; they count once `advance` says so, so what the
    head drafted is overwritten by the true features of the next step.
    """

    def __init__(self, config: HeadConfig, rows: int, capacity: int, like: Tensor) -> None:
        shape = (rows, config.kv_heads, capacity, config.head_dim)
        # Zeros, because masked columns still enter 0 * value and must be finite.
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)
        self.grouped = config.kv_heads < config.heads
        self.lengths = torch.zeros(rows, dtype=torch.long, device=like.device)
        self.host_lengths = [0] * rows

    def write(self, keys: Tensor, values: Tensor, offset: int) -> None:
        """keys, values [B, kv_heads, T, D] to the slots behind each row's length plus offset."""
        size = keys.shape[2]
        if self._uniform:
            first = self.host_lengths[0] + offset
            self.keys[:, :, first : first + size] = keys
            self.values[:, :, first : first + size] = values
            return
        lines = torch.arange(len(self.host_lengths), device=keys.device)[:, None]
        steps = torch.arange(size, device=keys.device)
        slots = self.lengths[:, None] + offset + steps
        self.keys[lines, :, slots] = keys.transpose(1, 2)
        self.values[lines, :, slots] = values.transpose(1, 2)

    def attend(self, queries: Tensor, seen: Tensor) -> Tensor:
        """One query per row [B, heads, 1, D] over that row's first seen [B] slots."""
        counts = seen.tolist()
        longest = max(counts)
        mask = None
        if min(counts) < longest:
            columns = torch.arange(longest, device=queries.device)
            mask = (columns < seen[:, None])[:, None, None]
        return self._attend(queries, mask, longest)

    def attend_tree(self, queries: Tensor, related: Tensor) -> Tensor:
        """Queries [B, heads, F, D] over the committed slots and, of the R slots behind them, those
        in related [B, F, R]."""
        longest = max(self.host_lengths) + related.shape[2]
        columns = torch.arange(longest, device=queries.device)
        mask = (columns < self.lengths[:, None])[:, None].repeat(1, related.shape[1], 1)
        own = self.lengths[:, None] + columns[: related.shape[2]]
        mask.scatter_(2, own[:, None].expand_as(related), related)
        return self._attend(queries, mask[:, None], longest)

    def _attend(self, queries: Tensor, mask: Tensor | None, longest: int) -> Tensor:
        return functional.scaled_dot_product_attention(
            queries,
            self.keys[:, :, :longest],
            self.values[:, :, :longest],
            mask,
            enable_gqa=self.grouped,
        )

    def advance(self, counts: Tensor) -> None:
        """Commit the first counts [B] entries behind each row's length."""
        self.lengths = self.lengths + counts
        self.host_lengths = self.lengths.tolist()

    def select(self, rows: Tensor) -> None:
        """Keep only rows [B'], in that order."""
        self.keys, self.values = self.keys[rows], self.values[rows]
        self.lengths = self.lengths[rows]
        self.host_lengths = self.lengths.tolist()

    @property
    def _uniform(self) -> bool:
        return all(length == self.host_lengths[0] for length in self.host_lengths)
