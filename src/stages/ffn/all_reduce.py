"""Dispatcher for tokens that every rank holds."""

from dataclasses import dataclass

from torch import Tensor

from draftmesh.registry import register
from draftmesh.stages.ffn.dispatcher import Batch, DispatcherBase
from draftmesh.stages.ffn.partial import partial_sums, select_pairs
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.traffic import EXPERTS


@register("dispatch", "all_reduce")
class AllReduce(DispatcherBase):
    """Each rank computes its experts' share of all tokens; one all-reduce adds the shares up."""

    replicated = True

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "all_reduce"

    def __init__(self, config: Config, mesh: Mesh, placement: Placement) -> None:
        super().__init__(mesh, placement)
        self._group = mesh.all_group
        assert mesh.dp == 1, "Plan refuses this"

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """See Dispatcher."""
        first = sum(self.placement.counts[: self.mesh.ep_rank])
        tokens, pairs, counts = select_pairs(self.positions(ids), first, len(self.local))
        return Batch(x[tokens], counts, (tokens, weights.reshape(-1)[pairs], len(x)))

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """See Dispatcher."""
        tokens, weights, length = batch.handle
        sums = partial_sums(rows, tokens, weights, length).to(rows.dtype)
        return self._group.all_reduce(sums, EXPERTS)

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """2 (n-1)/n of all tokens' rows per rank."""
        n = self._group.size
        return 2 * (n - 1) * ids.shape[0] * row_bytes // n
