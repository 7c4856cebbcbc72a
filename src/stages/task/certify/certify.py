"""task=certify: is the output of this very configuration still exactly the target's?"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.certificate import Certificate
from draftmesh.stages.task.certify.check import Check
from draftmesh.stages.task.certify.clock import Clock
from draftmesh.stages.task.certify.plan import checks_for

UNPROVEN = ("failed", "incomplete")
"""Verdicts for which the command must not end as if it had proven the run lossless."""


@register("task", "certify")
class Certify:
    """Checks losslessness instead of claiming it.

    Greedy tokens against plain decoding in float64, and sampled ones where the verifier shares its
    noise; the verifier's own code with all its outcomes listed; many draws against the exact
    distribution; divergences in the run's own dtype.
    """

    @dataclass(frozen=True)
    class Config:
        """budget: seconds that it may take; what does not fit is made smaller. distance: total
        variation that the draws should detect. significance: how often they may give a false
        alarm."""

        name: str = "certify"
        budget: float = 300.0
        distance: float = 0.02
        significance: float = 1e-4

        def __post_init__(self) -> None:
            if not self.budget > 0:
                raise UserError(f"task.budget={self.budget}: must be a positive number of seconds")
            for option in ("distance", "significance"):
                value = getattr(self, option)
                if not 0 < value < 1:
                    raise UserError(f"task.{option}={value}: must be between 0 and 1")

    def __init__(self, config: Config) -> None:
        self.config = config

    def run(self, pipeline: Pipeline) -> RunResult:
        """Measure a little, tell the cost, check, give the verdict."""
        config = self.config
        clock = Clock(pipeline.ranks, config.budget)
        checks = checks_for(
            pipeline,
            pipeline.requests(),
            distance=config.distance,
            significance=config.significance,
        )
        wanted = sum(check.cost for check in checks)
        share = min(1.0, clock.left() / max(wanted, 1e-9))
        if pipeline.ranks.rank == 0:
            print(told(checks, share, config.budget), file=sys.stderr, flush=True)
        parts = []
        for number, check in enumerate(checks):
            later = share * sum(other.cost for other in checks[number + 1 :])
            parts.append(check.run(share * check.cost, clock.late(later)))
        certificate = Certificate(parts, pipeline.lossless)
        seconds = clock.spent()
        document = certificate.document(
            configuration=_configuration(pipeline),
            budget=config.budget,
            estimated_seconds=wanted,
            seconds=seconds,
        )
        return RunResult(
            metrics={**certificate.metrics(), "certify_seconds": seconds},
            documents={"certificate.json": document},
            lines=[*certificate.notes, certificate.line],
            failed=certificate.line if certificate.verdict in UNPROVEN else None,
        )


def told(checks: Sequence[Check], share: float, budget: float) -> str:
    """The cost, before it arises."""
    parts = ", ".join(f"{check.title} {check.cost:.0f} s" for check in checks if check.cost)
    total = sum(check.cost for check in checks)
    line = f"certify: about {total:.0f} s ({parts})"
    if share < 1:
        line += f"; task.budget={budget:g} leaves {share * total:.0f} s, so it is made smaller"
    return line


def _configuration(pipeline: Pipeline) -> dict[str, Any]:
    spec = pipeline.spec
    nodes = ("model", "draft", "verifier", "ffn", "parallel", "sampling", "engine")
    found: dict[str, Any] = {kind: dict(getattr(spec, kind)) for kind in nodes}
    found["dtype"] = str(pipeline.target.dtype).removeprefix("torch.")
    found["seed"] = spec.seed
    return found
