"""Dispatcher of one rank: every expert is here."""

from dataclasses import dataclass

from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.dispatcher import Batch, DispatcherBase, ungroup_rows, weighted_sum
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Mesh


@register("dispatch", "local")
class Local(DispatcherBase):
    """No communication: the rank holds every expert whole."""

    replicated = True

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "local"

    def __init__(self, config: Config, mesh: Mesh, placement: Placement) -> None:
        super().__init__(mesh, placement)
        assert mesh.world == 1, "Plan refuses this"

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """See Dispatcher."""
        flat = self.positions(ids).reshape(-1)
        order = flat.argsort(stable=True)
        counts = flat.bincount(minlength=self.placement.experts).tolist()
        return Batch(x[order // ids.shape[1]], counts, (order, weights))

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """See Dispatcher."""
        order, weights = batch.handle
        return weighted_sum(ungroup_rows(rows, order), weights, rows.dtype)

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """Nothing is sent."""
        return 0
