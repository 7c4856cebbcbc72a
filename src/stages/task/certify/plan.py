"""Which checks a configuration needs."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import torch

from draftmesh.registry import get
from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.check import Check
from draftmesh.stages.task.certify.drawcheck import DrawCheck
from draftmesh.stages.task.certify.exactcheck import ExactCheck
from draftmesh.stages.task.certify.float64 import Doubled, in_float64
from draftmesh.stages.task.certify.part import Part
from draftmesh.stages.task.certify.tokencheck import TokenCheck

GREEDY = "greedy tokens in {}"
SAMPLED = "sampled tokens at the same seed in {}"


class LeftOut:
    """A check that cannot be done here, and why."""

    cost = 0.0

    def __init__(self, name: str, title: str, why: str) -> None:
        self.name, self.title, self.why = name, title, why

    def run(self, seconds: float, late: Callable[[], bool]) -> Part:
        """Only says so."""
        return Part(self.name, self.title, None, "left out", (self.why,))


def checks_for(
    pipeline: Pipeline, requests: Sequence[Request], *, distance: float, significance: float
) -> list[Check]:
    """Greedy tokens in float64 for every configuration; for sampling, tokens at the same seed where
    the verifier shares plain decoding's noise, else draws; the run's own dtype as a report, or as
    the test where float64 is left out."""
    size = pipeline.spec.batch_size * pipeline.ranks.dp
    sampling, rounded = not pipeline.sampler.greedy, pipeline.target.dtype != torch.float64
    checks: list[Check] = [ExactCheck(pipeline, requests[:size])]
    doubled = in_float64(pipeline)
    checks += _float64(doubled, requests, sampled=sampling and pipeline.comparable and rounded)
    if sampling and pipeline.comparable:
        checks.append(_sampled("own", pipeline, requests))
    if rounded:
        checks.append(_greedy("own", pipeline, requests, must=doubled.pipeline is None))
    if sampling and not pipeline.comparable:
        checks.append(DrawCheck(pipeline, requests, distance=distance, significance=significance))
    return checks


def _float64(doubled: Doubled, requests: Sequence[Request], *, sampled: bool) -> list[Check]:
    if doubled.pipeline is None:
        return [LeftOut("float64_greedy", GREEDY.format("float64"), doubled.note or "")]
    checks = [_greedy("float64", doubled.pipeline, requests, must=True, note=doubled.note)]
    if sampled:
        checks.append(_sampled("float64", doubled.pipeline, requests, note=doubled.note))
    return checks


def _greedy(name: str, pipeline: Pipeline, requests: Sequence[Request], **options: Any) -> Check:
    title = GREEDY.format(_dtype(pipeline))
    name, metric = f"{name}_greedy", "exact_match" if name == "float64" else "own_dtype_match"
    if not pipeline.sampler.greedy:
        sampler = pipeline.spec.sampling["name"]
        known = {field.name for field in fields(get("sampling", sampler).Config)}
        if "temperature" not in known:
            return LeftOut(name, title, f"left out: sampling={sampler} has no option temperature")
        pipeline = pipeline.variant(sampling={"temperature": 0.0})
    return TokenCheck(name, title, pipeline, requests, metric=metric, **options)


def _sampled(
    name: str, pipeline: Pipeline, requests: Sequence[Request], note: str | None = None
) -> Check:
    title = SAMPLED.format(_dtype(pipeline))
    metric = f"{name}_sampled_match"
    return TokenCheck(
        f"{name}_sampled", title, pipeline, requests, must=True, metric=metric, note=note
    )


def _dtype(pipeline: Pipeline) -> str:
    return str(pipeline.target.dtype).removeprefix("torch.")
