"""The exact test as a check."""

from collections.abc import Sequence
from dataclasses import replace

from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.clock import Clock
from draftmesh.stages.task.certify.exact import TITLE, exact_test
from draftmesh.stages.task.certify.part import Part
from draftmesh.stages.task.certify.prefix import pieces, prefix
from draftmesh.stages.task.certify.shape import Shape
from draftmesh.stages.task.certify.watch import Watched
from draftmesh.stages.task.certify.whole import WholeDraft

TOKENS = 4
SECONDS = 3.0


class ExactCheck:
    """Needs the shape of the draft's proposals, which it takes from a few of them."""

    title = TITLE

    def __init__(self, pipeline: Pipeline, requests: Sequence[Request]) -> None:
        self.pipeline = pipeline
        self.cost = SECONDS
        self.shape, self.note = self._shape(requests)

    def run(self, seconds: float, clock: Clock) -> Part:
        """Rank 0 lists the outcomes; it never takes long."""
        pipeline = self.pipeline
        if pipeline.ranks.rank > 0:
            return Part("exact", TITLE, None, "done by rank 0")
        part = exact_test(pipeline.verifier, pipeline.spec.sampling, self.shape)
        return replace(part, notes=(self.note,)) if self.note else part

    def _shape(self, requests: Sequence[Request]) -> tuple[Shape, str | None]:
        pipeline, draft = self.pipeline, self.pipeline.main_draft
        if draft.depth == 0:
            return Shape(), None
        longest = max(len(r.token_ids) for r in requests) + TOKENS
        whole = WholeDraft(draft, max(1, pipeline.target.context - longest - 1))
        short = [replace(r, max_new_tokens=TOKENS) for r in requests]
        twice = [prefix(2 * piece) for piece in pieces(requests, pipeline.checkpoint.eos_ids)]
        short += [replace(short[0], token_ids=begun.prompt) for begun in twice]
        forced = {begun.prompt: begun.forced for begun in twice}
        watched = Watched(pipeline.sampler, (), forced)
        pipeline.generate(pipeline.engine_with(whole, None, watched), short)
        seen = [shape for shape in pipeline.ranks.gather(whole.shape) or [] if shape is not None]
        if seen:
            return max(seen, key=lambda shape: len(shape.parents)), None
        chain = Shape(tuple(range(-1, draft.depth - 1)), (False,) * draft.depth)
        return chain, "the draft proposed nothing for the prompts; a chain was taken instead"
