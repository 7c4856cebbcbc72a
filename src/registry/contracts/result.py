"""What a task hands back for the run's records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.tracking import Scalar


@dataclass(frozen=True)
class RunResult:
    """A task's outcome, as rank 0 returns it to the parent (picklable).

    `generation` is what the configured method did and `plain` the same prompts by plain decoding of
    the same model, ffn and plan, when measured; the pipeline derives their metrics. `comparable`
    says that both must agree token by token (greedy, or the `match` verifier at the same seed),
    `tree` that proposals could branch. `pieces` holds each completion's tokens as text, in order.
    `metrics` are further flat names and values, which win over derived ones: numbers and booleans
    become metrics of the tracker, strings tags, and None means that the value does not apply.
    `expert_load` is tokens routed to [layer][expert]; `documents` are further files of the run
    folder by name: text as it is, anything else as JSON. `lines` are for the terminal. `failed`
    says why the run must count as failed though it went to its end: its records are written, its
    exit code is 1.
    """

    generation: Generation | None = None
    plain: Generation | None = None
    comparable: bool = False
    tree: bool = False
    pieces: Sequence[Sequence[str]] = ()
    metrics: Mapping[str, Scalar] = field(default_factory=dict)
    expert_load: Sequence[Sequence[float]] | None = None
    documents: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = ()
    failed: str | None = None
