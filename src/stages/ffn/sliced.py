"""What wraps a dispatcher when ranks share tokens or experts."""

import torch
from torch import Tensor

from draftmesh.stages.ffn.dispatcher import Batch, Dispatcher, group_rows, ungroup_rows
from draftmesh.stages.parallel.group import Group
from draftmesh.stages.parallel.traffic import EXPERTS


class OwnSlice:
    """Tokens that a tensor-parallel group holds in common are divided among its ranks first, and
    gathered afterwards, so that none is computed twice."""

    replicated = True

    def __init__(self, inner: Dispatcher, group: Group) -> None:
        self.inner = inner
        self.group = group

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """See Dispatcher."""
        share = self._share(len(x))
        mine = slice(share * self.group.index, share * (self.group.index + 1))
        inner = self.inner.dispatch(x[mine], ids[mine], weights[mine])
        return Batch(inner.rows, inner.counts, (inner, len(x)))

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """See Dispatcher."""
        inner, length = batch.handle
        own = self.inner.combine(rows, inner)
        return self.group.all_gather_rows(own, self._lengths(length), EXPERTS)

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """The inner formula on this rank's slice, and the slice to the others of the group."""
        lengths = self._lengths(len(ids))
        own = ids.split(lengths)[self.group.index]
        gather = (self.group.size - 1) * len(own) * row_bytes
        return self.inner.predicted_bytes(own, row_bytes, weight_bytes) + gather

    def _share(self, tokens: int) -> int:
        return -(-tokens // self.group.size)

    def _lengths(self, tokens: int) -> list[int]:
        share = self._share(tokens)
        return [min(share, max(0, tokens - share * i)) for i in range(self.group.size)]


class InnerSplit:
    """Each expert's inner width is split over a group: its ranks gather one another's rows, compute
    partial outputs of all of them, and each gets the sums of its own rows back."""

    replicated = False

    def __init__(self, inner: Dispatcher, group: Group, experts: int) -> None:
        self.inner = inner
        self.group = group
        self.experts = experts

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """See Dispatcher."""
        inner = self.inner.dispatch(x, ids, weights)
        counts = torch.tensor(inner.counts, dtype=torch.int64, device=x.device)
        sources = self.group.all_gather(counts, EXPERTS).cpu()
        lengths = sources.sum(1).tolist()
        rows = self.group.all_gather_rows(inner.rows, lengths, EXPERTS)
        rows, order = group_rows(rows, sources)
        return Batch(rows, sources.sum(0).tolist(), (inner, order, lengths))

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """See Dispatcher."""
        inner, order, lengths = batch.handle
        own = self.group.reduce_scatter_rows(ungroup_rows(rows, order), lengths, EXPERTS)
        return self.inner.combine(own, inner)

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """The inner formula, and 2 rows per pair to each other rank of the group."""
        others = self.group.size - 1
        rows = 2 * others * ids.numel() * row_bytes
        counts = others * self.experts * 8
        return self.inner.predicted_bytes(ids, row_bytes, weight_bytes) + rows + counts
