"""What a task hands back for the run's records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.request import Completion
from draftmesh.registry.contracts.tracking import Scalar


@dataclass(frozen=True)
class RunResult:
    """A task's outcome, as rank 0 returns it to the parent (picklable).

    `metrics` are flat names and values: numbers and booleans become metrics of the tracker, strings
    tags, and None means that the value does not apply. `pieces` holds each completion's tokens as
    text, in the order of `completions`. `documents` are further JSON files of the run folder by name,
    `expert_load` is tokens routed to [layer][expert].
    """

    metrics: Mapping[str, Scalar] = field(default_factory=dict)
    completions: Sequence[Completion] = ()
    pieces: Sequence[Sequence[str]] = ()
    counters: Counters | None = None
    expert_load: Sequence[Sequence[float]] | None = None
    documents: Mapping[str, Any] = field(default_factory=dict)
