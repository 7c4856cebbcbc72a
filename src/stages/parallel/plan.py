"""The mesh of a run: world = dp * tp = ep * etp. Imports no torch."""

import re
from dataclasses import dataclass

from draftmesh.registry import UserError, register

ENDPOINT = r"(\[[\w.:-]+\]|[\w.:-]+):[0-9]{1,5}"


@dataclass(frozen=True)
class Plan:
    """How many ranks there are and how they are grouped.

    Ranks are numbered with the tensor-parallel index fastest: rank = dp_rank * tp + tp_rank, and
    for the experts rank = ep_rank * etp + etp_rank. `dispatch`, `compute` and `placement` name
    plugins of those kinds; "auto" is resolved for the model at hand.
    """

    tp: int = 1
    ep: int = 1
    etp: int = 1
    dispatch: str = "auto"
    compute: str = "auto"
    placement: str = "contiguous"
    nnodes: int = 1
    node_rank: int = 0
    rdzv_endpoint: str | None = None
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        for option in ("tp", "ep", "etp", "nnodes"):
            if getattr(self, option) < 1:
                raise UserError(f"parallel.{option}={getattr(self, option)}: must be at least 1")
        self._check_mesh()
        self._check_dispatch()
        self._check_nodes()
        if self.timeout_s <= 0:
            raise UserError(f"parallel.timeout_s={self.timeout_s}: must be positive")

    @property
    def world(self) -> int:
        """Number of ranks."""
        return max(self.tp, self.ep * self.etp)

    @property
    def dp(self) -> int:
        """Data-parallel groups; each owns its own prompts."""
        return self.world // self.tp

    @property
    def local_ranks(self) -> int:
        """Ranks on each node."""
        return self.world // self.nnodes

    @property
    def name(self) -> str:
        """A short name for tables: single, tp2, ep4, ep2tp2 ..."""
        parts = [f"{k}{v}" for k, v in (("ep", self.ep), ("tp", self.tp)) if v > 1]
        if self.etp != self.tp:
            parts.append(f"etp{self.etp}")
        return "".join(parts) or "single"

    def _check_mesh(self) -> None:
        if self.world % self.tp:
            raise UserError(
                f"parallel.tp={self.tp} does not divide the {self.world} ranks of "
                f"parallel.ep={self.ep} x parallel.etp={self.etp}: change parallel.tp"
            )
        if self.ep * self.etp != self.world:
            fitting = f"set parallel.etp={self.tp // self.ep} or " if self.tp % self.ep == 0 else ""
            raise UserError(
                f"parallel.ep={self.ep} x parallel.etp={self.etp} leaves some of the {self.world} "
                f"ranks of parallel.tp={self.tp} without experts: {fitting}change parallel.ep"
            )

    def _check_dispatch(self) -> None:
        if self.dispatch == "local" and self.world > 1:
            raise UserError(
                f"parallel.dispatch=local: the experts are split over {self.world} ranks; "
                "use parallel.dispatch=auto"
            )
        if self.dispatch == "all_reduce" and self.dp > 1:
            raise UserError(
                "parallel.dispatch=all_reduce needs the same tokens on every rank, that is "
                f"parallel.tp={self.world}: use parallel.dispatch=all_to_all"
            )

    def _check_nodes(self) -> None:
        if self.world % self.nnodes:
            raise UserError(
                f"parallel.nnodes={self.nnodes} does not divide the plan's {self.world} ranks"
            )
        if not 0 <= self.node_rank < self.nnodes:
            raise UserError(
                f"parallel.node_rank={self.node_rank}: must be from 0 to {self.nnodes - 1}"
            )
        if self.nnodes > 1 and not re.fullmatch(ENDPOINT, self.rdzv_endpoint or ""):
            given = f"={self.rdzv_endpoint}" if self.rdzv_endpoint else ""
            raise UserError(
                f"parallel.rdzv_endpoint{given}: several machines need node 0's host:port, the "
                "same on each"
            )


@register("parallel", "mesh")
class MeshPlan:
    """Ranks in a mesh world = dp*tp = ep*etp, with experts and tensors split over them."""

    @dataclass(frozen=True)
    class Config:
        """`etp: null` fills the mesh: experts' inner width is split where ep alone is too small."""

        name: str = "mesh"
        tp: int = 1
        ep: int = 1
        etp: int | None = None
        dispatch: str = "auto"
        compute: str = "auto"
        placement: str = "contiguous"
        nnodes: int = 1
        node_rank: int = 0
        rdzv_endpoint: str | None = None
        timeout_s: float = 60.0

    def __init__(self, config: Config) -> None:
        etp = config.etp
        if etp is None:
            etp = max(1, config.tp // max(1, config.ep))
        self.plan = Plan(
            tp=config.tp,
            ep=config.ep,
            etp=etp,
            dispatch=config.dispatch,
            compute=config.compute,
            placement=config.placement,
            nnodes=config.nnodes,
            node_rank=config.node_rank,
            rdzv_endpoint=config.rdzv_endpoint,
            timeout_s=config.timeout_s,
        )
