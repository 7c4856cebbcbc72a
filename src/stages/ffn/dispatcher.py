"""How rows reach the ranks that hold their experts, and come back."""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Mesh


@dataclass(frozen=True)
class Batch:
    """Rows for this rank's experts: rows [R, H] sorted by local expert, `counts` how many each of
    them gets (their sum is R), and what `combine` needs to undo it."""

    rows: Tensor
    counts: list[int]
    handle: Any


class Dispatcher(Protocol):
    """Kind `dispatch`: `Stage(config, mesh, placement)`. One instance serves every layer.

    Every rank of the mesh calls `dispatch` and `combine` the same number of times, with zero tokens
    where it has none.
    """

    replicated: bool
    """All ranks pass the same tokens; otherwise each passes tokens of its own."""

    def dispatch(self, x: Tensor, ids: Tensor, weights: Tensor) -> Batch:
        """x [T, H], ids [T, k] int64 expert ids, weights [T, k]."""
        ...

    def combine(self, rows: Tensor, batch: Batch) -> Tensor:
        """The experts' outputs [R, H] -> weighted sums [T, H]."""
        ...

    def predicted_bytes(self, ids: Tensor, row_bytes: int, weight_bytes: int) -> int:
        """Bytes that the collectives send, over all ranks, because of these tokens' routing, by the
        scheme's formula; the sum over ranks equals what the collectives count.

        ids [T, k]; `row_bytes` is the size of a hidden state, `weight_bytes` of a router weight.
        """
        ...


class DispatcherBase:
    """What the dispatchers share: the mesh, the placement, and this rank's experts."""

    replicated = False

    def __init__(self, mesh: Mesh, placement: Placement) -> None:
        self.mesh = mesh
        self.placement = placement
        self.local = placement.held_by(mesh.ep_rank)
        self._positions = placement.positions()
        self._owners = torch.tensor(placement.owners, dtype=torch.int64)

    def positions(self, ids: Tensor) -> Tensor:
        """Expert ids -> places in the placement's order (grouped by owner)."""
        if self._positions.device != ids.device:
            self._positions = self._positions.to(ids.device)
        return self._positions[ids]

    def owners(self, ids: Tensor) -> Tensor:
        """Expert ids -> expert-parallel ranks."""
        if self._owners.device != ids.device:
            self._owners = self._owners.to(ids.device)
        return self._owners[ids]


def weighted_sum(rows: Tensor, weights: Tensor, dtype: torch.dtype) -> Tensor:
    """rows [T * k, H] in (token, slot) order, weights [T, k] -> [T, H], summed in slot order in at
    least float32."""
    wide = torch.promote_types(dtype, torch.float32)
    tokens, k = weights.shape
    parts = rows.reshape(tokens, k, rows.shape[-1]).to(wide)
    return (parts * weights.to(wide)[..., None]).sum(1).to(dtype)


def group_rows(rows: Tensor, sources: Tensor) -> tuple[Tensor, Tensor]:
    """Rows that arrive source by source, each sorted by expert, into expert order.

    sources [S, e] int64: how many rows source s sent for local expert e. Returns the sorted rows
    and the order that was applied.
    """
    count = sources.shape[1]
    experts = torch.arange(count, device=rows.device).repeat(sources.shape[0])
    order = experts.repeat_interleave(sources.reshape(-1).to(rows.device)).argsort(stable=True)
    return rows[order], order


def ungroup_rows(rows: Tensor, order: Tensor) -> Tensor:
    """The inverse of sorting rows by `order`."""
    out = torch.empty_like(rows)
    out[order] = rows
    return out
