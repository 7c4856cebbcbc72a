"""Dispatcher that sends a token once to each rank, however many of its experts are there."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.dispatcher import Batch, DispatcherBase
from draftmesh.stages.ffn.partial import partial_sums, select_pairs
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.traffic import EXPERTS


@register("dispatch", "all_to_all_dedup")
class AllToAllDedup(DispatcherBase):
    """One row per (token, rank) pair, with the token's expert ids and weights; the receiving rank
    returns the weighted sum over its experts (as DeepEP's normal mode does)."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "all_to_all_dedup"

    def __init__(self, config: Config, mesh: Mesh, placement: Placement) -> None:
        super().__init__(mesh, placement)
        self._group = mesh.ep_group
        self._first = sum(placement.counts[: mesh.ep_rank])

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """See Dispatcher."""
        ranks, tokens = self._wanted(ids).t().nonzero(as_tuple=True)
        send_counts = ranks.bincount(minlength=self._group.size)
        ones = [1] * self._group.size
        send = send_counts.tolist()
        receive = self._group.all_to_all(send_counts, ones, ones, EXPERTS).tolist()
        rows = self._group.all_to_all(x[tokens], send, receive, EXPERTS)
        places = self.positions(ids).to(torch.int32)[tokens]
        places = self._group.all_to_all(places, send, receive, EXPERTS)
        theirs = self._group.all_to_all(weights[tokens], send, receive, EXPERTS)
        owners, pairs, counts = select_pairs(places, self._first, len(self.local))
        handle = (owners, theirs.reshape(-1)[pairs], len(rows), tokens, len(x), send, receive)
        return Batch(rows[owners], counts, handle)

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """See Dispatcher."""
        owners, weights, received, tokens, length, send, receive = batch.handle
        sums = partial_sums(rows, owners, weights, received).to(rows.dtype)
        back = self._group.all_to_all(sums, receive, send, EXPERTS)
        return partial_sums(back, tokens, None, length).to(rows.dtype)

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """2 rows per (token, other rank) pair, plus its k ids (4 bytes each) and k weights."""
        if self._group.size == 1:
            return 0
        wanted = self._wanted(ids)
        away = int(wanted.sum() - wanted[:, self._group.index].sum())
        slots = ids.shape[1] * (4 + weight_bytes)
        return away * (2 * row_bytes + slots) + 8 * (self._group.size - 1)

    def _wanted(self, ids: Tensor) -> Tensor:
        wanted = ids.new_zeros(len(ids), self._group.size, dtype=torch.bool)
        return wanted.scatter_(1, self.owners(ids), True)
