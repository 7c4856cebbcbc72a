"""Dispatcher that shows every token to every rank."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.dispatcher import Batch, DispatcherBase
from draftmesh.stages.ffn.partial import partial_sums, select_pairs
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.traffic import EXPERTS


@register("dispatch", "allgather")
class AllGather(DispatcherBase):
    """All-gather of tokens, ids and weights; each rank adds up its experts' share of every token;
    reduce-scatter of the shares. Moves less than pairs do where top-k is at least the ranks."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "allgather"

    def __init__(self, config: Config, mesh: Mesh, placement: Placement) -> None:
        super().__init__(mesh, placement)
        self._group = mesh.ep_group
        self._first = sum(placement.counts[: mesh.ep_rank])

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """See Dispatcher."""
        length = torch.tensor([len(x)], device=x.device)
        lengths = self._group.all_gather(length, EXPERTS).reshape(-1).tolist()
        rows = self._group.all_gather_rows(x, lengths, EXPERTS)
        places = self.positions(ids).to(torch.int32)
        places = self._group.all_gather_rows(places, lengths, EXPERTS)
        theirs = self._group.all_gather_rows(weights, lengths, EXPERTS)
        owners, pairs, counts = select_pairs(places, self._first, len(self.local))
        return Batch(rows[owners], counts, (owners, theirs.reshape(-1)[pairs], lengths))

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """See Dispatcher."""
        owners, weights, lengths = batch.handle
        sums = partial_sums(rows, owners, weights, sum(lengths)).to(rows.dtype)
        return self._group.reduce_scatter_rows(sums, lengths, EXPERTS)

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """2 rows per token to each other rank, plus its k ids and weights and one length."""
        slots = ids.shape[1] * (4 + weight_bytes)
        return (self._group.size - 1) * (len(ids) * (2 * row_bytes + slots) + 8)
