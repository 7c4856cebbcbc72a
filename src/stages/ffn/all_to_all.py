"""Dispatcher that sends one row per (token, expert) pair."""

from dataclasses import dataclass

from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.dispatcher import (
    Batch,
    DispatcherBase,
    group_rows,
    ungroup_rows,
    weighted_sum,
)
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.traffic import EXPERTS


@register("dispatch", "all_to_all")
class AllToAll(DispatcherBase):
    """One row per (token, expert) pair: counts, rows there, rows back (3 all-to-alls).

    Router weights stay with the sender and the weighted sum keeps the order of the slots, so
    results do not depend on the number of ranks beyond the experts' own arithmetic.
    """

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "all_to_all"

    def __init__(self, config: Config, mesh: Mesh, placement: Placement) -> None:
        super().__init__(mesh, placement)
        self._group = mesh.ep_group
        self._shares = placement.counts

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """See Dispatcher."""
        flat = self.positions(ids).reshape(-1)
        order = flat.argsort(stable=True)
        counts = flat.bincount(minlength=self.placement.experts)
        arriving = self._group.all_to_all(
            counts, self._shares, [len(self.local)] * self._group.size, EXPERTS
        ).view(self._group.size, len(self.local))
        send = [int(part.sum()) for part in counts.cpu().split(self._shares)]
        arriving = arriving.cpu()
        receive = arriving.sum(1).tolist()
        rows = self._group.all_to_all(x[order // ids.shape[1]], send, receive, EXPERTS)
        rows, regroup = group_rows(rows, arriving)
        return Batch(rows, arriving.sum(0).tolist(), (order, weights, regroup, send, receive))

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """See Dispatcher."""
        order, weights, regroup, send, receive = batch.handle
        back = self._group.all_to_all(ungroup_rows(rows, regroup), receive, send, EXPERTS)
        return weighted_sum(ungroup_rows(back, order), weights, rows.dtype)

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """2 rows per pair whose expert is elsewhere, and 8 bytes per expert that is elsewhere."""
        away = int((self.owners(ids) != self.mesh.ep_rank).sum())
        counts = 8 * (self.placement.experts - len(self.local)) if self._group.size > 1 else 0
        return 2 * away * row_bytes + counts
