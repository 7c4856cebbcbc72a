"""One part of a certificate."""

from dataclasses import dataclass, field
from typing import Any

from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.tracking import Scalar


@dataclass(frozen=True)
class Part:
    """What was looked at and what was found.

    holds: whether it agrees with plain decoding; None where it only reports, or was left out.
    summary: the finding, as the end of a sentence; notes: what was left out or made smaller, and
    why. data: the numbers; metrics: those of them that are results of the run.
    """

    name: str
    title: str
    holds: bool | None
    summary: str
    notes: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Scalar] = field(default_factory=dict)
    seconds: float = 0.0


def untested(counters: Counters) -> str:
    """A note: nothing was accepted, so that the part tells little about accepted drafts."""
    if not counters.drafted:
        return "the draft proposed nothing"
    return f"none of {counters.drafted:,} drafted tokens was accepted"
