"""A group of ranks and its collectives, each counted."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from draftmesh.stages.parallel.traffic import Traffic


class Group:
    """`size` ranks that call the same collectives in the same order; alone, every call is local.

    `index` is this rank's place in the group and `ranks` the members' global ranks. Only what gloo
    and NCCL both offer is used: ragged gathers are padded, rows are made contiguous.
    """

    def __init__(
        self, ranks: Sequence[int], index: int, traffic: Traffic, handle: Any = None
    ) -> None:
        self.ranks = tuple(ranks)
        self.index = index
        self.size = len(self.ranks)
        self.traffic = traffic
        self._handle = handle

    @staticmethod
    def alone(rank: int = 0, traffic: Traffic | None = None) -> "Group":
        """A group of one."""
        return Group((rank,), 0, traffic or Traffic())

    def all_reduce(
        self, x: Tensor, category: str, op: dist.ReduceOp.RedOpType | None = None
    ) -> Tensor:
        """The sum (or `op`) over the group, in place where x is contiguous."""
        if self.size == 1:
            return x
        x = x.contiguous()
        sent = 2 * (self.size - 1) * _size(x) // self.size
        with self.traffic.measure(category, _rows(x), sent):
            dist.all_reduce(x, op or dist.ReduceOp.SUM, group=self._handle)
        return x

    def broadcast(self, x: Tensor, category: str) -> Tensor:
        """The first member's tensor, in place; shapes and dtypes are equal."""
        if self.size == 1:
            return x
        x = x.contiguous()
        sent = (self.size - 1) * _size(x) if self.index == 0 else 0
        with self.traffic.measure(category, _rows(x), sent):
            dist.broadcast(x, src=self.ranks[0], group=self._handle)
        return x

    def all_gather(self, x: Tensor, category: str) -> Tensor:
        """Tensors of equal shape [...] -> [size, ...]."""
        if self.size == 1:
            return x[None]
        x = x.contiguous()
        out = x.new_empty(self.size, *x.shape)
        with self.traffic.measure(category, _rows(x), (self.size - 1) * _size(x)):
            dist.all_gather(list(out.unbind(0)), x, group=self._handle)
        return out

    def all_gather_rows(self, x: Tensor, counts: Sequence[int], category: str) -> Tensor:
        """Ragged rows x [counts[index], ...] -> [sum(counts), ...], in member order."""
        if self.size == 1:
            return x
        own = counts[self.index]
        return self.all_to_all(
            x.repeat(self.size, *[1] * (x.dim() - 1)), [own] * self.size, counts, category
        )

    def reduce_scatter_rows(self, x: Tensor, counts: Sequence[int], category: str) -> Tensor:
        """x [sum(counts), ...] -> this member's counts[index] rows, summed over the group in member
        order (in at least float32)."""
        if self.size == 1:
            return x
        own = counts[self.index]
        parts = self.all_to_all(x, counts, [own] * self.size, category).unflatten(
            0, (self.size, own)
        )
        wide = torch.promote_types(x.dtype, torch.float32)
        return parts.to(wide).sum(0).to(x.dtype)

    def all_to_all(
        self, x: Tensor, send: Sequence[int], receive: Sequence[int], category: str
    ) -> Tensor:
        """Rows x [sum(send), ...] -> [sum(receive), ...]: send[i] rows go to member i, and
        receive[j] rows come from member j. Zero rows are fine, but every member calls."""
        if self.size == 1:
            return x
        x = x.contiguous()
        out = x.new_empty(sum(receive), *x.shape[1:])
        leaving = sum(send) - send[self.index]
        with self.traffic.measure(
            category, leaving, leaving * _size(x[:0].new_empty(1, *x.shape[1:]))
        ):
            dist.all_to_all_single(out, x, list(receive), list(send), group=self._handle)
        return out


def _size(x: Tensor) -> int:
    return x.numel() * x.element_size()


def _rows(x: Tensor) -> int:
    return x.shape[0] if x.dim() else 1
