"""Preallocated key/value slots with a length per sequence (contract: Cache)."""

from typing import Any

import torch
from torch import Tensor


class SlotCache:
    """Keys and values of B sequences; each layer's buffers are [B, Hkv, capacity, D], on the
    layer's own device.

    transformers calls `update` in every attention layer. The slots of a forward are fixed by
    `place`; they become part of the sequence only through `advance` or `keep`, so what a rejected
    draft wrote is simply overwritten. Shapes may differ between layers.
    """

    is_compileable = False

    def __init__(self, rows: int, capacity: int, device: torch.device) -> None:
        self.capacity = capacity
        self.device = device
        self.lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self.host_lengths = [0] * rows
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}
        self._first = 0
        self._end = 0
        self._slots: Tensor | None = None

    @property
    def rows(self) -> int:
        """B."""
        return len(self.host_lengths)

    @property
    def uniform(self) -> bool:
        """All rows have the same length."""
        return all(length == self.host_lengths[0] for length in self.host_lengths)

    def place(self, tokens: int, offset: int = 0) -> int:
        """Choose the slots of the next forward: `tokens` behind each row's length plus offset.

        Returns the number of key columns the forward will attend over.
        """
        end = max(self.host_lengths) + offset + tokens
        assert end <= self.capacity, f"cache of {self.capacity} slots, {end} needed"
        self._first, self._end = self.host_lengths[0] + offset, end
        if self.uniform:
            self._slots = None
        else:
            steps = torch.arange(tokens, device=self.device)
            self._slots = self.lengths[:, None] + offset + steps
        return end

    def update(
        self, key: Tensor, value: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write key, value [B, Hkv, T, D] to the chosen slots; return all columns so far."""
        if layer_idx not in self.keys:
            self.keys[layer_idx] = self._allocate(key)
            self.values[layer_idx] = self._allocate(value)
        keys, values = self.keys[layer_idx], self.values[layer_idx]
        if self._slots is None:
            keys[:, :, self._first : self._end] = key
            values[:, :, self._first : self._end] = value
        else:
            slots = self._slots.to(key.device)
            lines = torch.arange(self.rows, device=key.device)[:, None]
            keys[lines, :, slots] = key.transpose(1, 2)
            values[lines, :, slots] = value.transpose(1, 2)
        return keys[:, :, : self._end], values[:, :, : self._end]

    def _allocate(self, like: Tensor) -> Tensor:
        # Zeros, because masked columns still enter 0 * value and must be finite.
        return like.new_zeros(like.shape[0], like.shape[1], self.capacity, like.shape[3])

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """The longest row, for transformers; positions are always given explicitly."""
        return max(self.host_lengths)

    def advance(self, counts: Tensor) -> None:
        """Commit the first counts [B] tokens written behind each row's length."""
        self.lengths = self.lengths + counts.to(self.device)
        self.host_lengths = [a + b for a, b in zip(self.host_lengths, counts.tolist(), strict=True)]

    def keep(self, path: Tensor, counts: Tensor) -> None:
        """Commit tokens at offsets path [B, D] behind each row's length, the first counts [B] of
        them.
        """
        depth = path.shape[1]
        steps = torch.arange(depth, device=path.device)
        path = torch.where(steps < counts[:, None], path, steps)
        if not torch.equal(path, steps.expand_as(path)):
            lines = torch.arange(self.rows, device=self.device)[:, None]
            source = self.lengths[:, None] + path.to(self.device)
            slots = self.lengths[:, None] + steps.to(self.device)
            for store in (self.keys, self.values):
                for buffer in store.values():
                    _move(buffer, lines, source, slots)
        self.advance(counts)

    def select(self, rows: Tensor) -> None:
        """Keep only rows [B'], in that order."""
        rows = rows.to(self.device)
        self.lengths = self.lengths[rows]
        self.host_lengths = [self.host_lengths[row] for row in rows.tolist()]
        for store in (self.keys, self.values):
            for layer, buffer in store.items():
                store[layer] = buffer[rows.to(buffer.device)]


def _move(buffer: Tensor, lines: Tensor, source: Tensor, slots: Tensor) -> None:
    """Copy columns source [B, D] of a buffer to slots [B, D], wherever the buffer is."""
    lines, source, slots = (index.to(buffer.device) for index in (lines, source, slots))
    buffer[lines, :, slots] = buffer[lines, :, source]
