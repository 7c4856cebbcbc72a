"""What collectives and experts counted on one rank."""

from dataclasses import dataclass

from draftmesh.stages.ffn.report import MoeReport
from draftmesh.stages.ffn.stage import FeedForward
from draftmesh.stages.parallel.ranks import Mesh


@dataclass(frozen=True)
class Meters:
    """Calls and bytes of a forward's collectives, the bytes that formulas predict, the experts'
    own report."""

    calls: int
    bytes: int
    predicted_bytes: int
    experts: MoeReport | None


def read_meters(ffn: FeedForward, ranks: Mesh) -> Meters:
    """Since the last reset."""
    total = ranks.traffic.total()
    experts = None if ffn.moe is None else ffn.moe.report()
    return Meters(total.calls, total.bytes, ranks.traffic.predicted(), experts)
