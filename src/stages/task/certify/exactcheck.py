"""The exact test as a check."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.exact import TITLE, exact_test
from draftmesh.stages.task.certify.part import Part
from draftmesh.stages.task.certify.prefix import pieces, prefix
from draftmesh.stages.task.certify.shape import Shape
from draftmesh.stages.task.certify.watch import Watched
from draftmesh.stages.task.certify.whole import WholeDraft, keep_largest

TOKENS = 4
SECONDS = 3.0


class ExactCheck:
    """Needs the shape of the draft's proposals, which it takes from a few of them."""

    title = TITLE

    def __init__(self, pipeline: Pipeline, requests: Sequence[Request]) -> None:
        self.pipeline = pipeline
        self.cost = SECONDS
        self.shapes = self._shapes(requests)

    def run(self, seconds: float, late: Callable[[], bool]) -> Part:
        """Rank 0 lists the outcomes; it never takes long."""
        pipeline = self.pipeline
        if pipeline.ranks.rank > 0:
            return Part("exact", TITLE, None, "done by rank 0")
        shapes, notes = self.shapes, tuple[str, ...]()
        if not shapes:
            depth = pipeline.main_draft.depth
            shapes = [Shape(tuple(range(-1, depth - 1)), (False,) * depth)]
            notes = ("the draft proposed nothing for the prompts; a chain was taken instead",)
        part = exact_test(pipeline.verifier, pipeline.spec.sampling, shapes)
        return replace(part, notes=notes)

    def _shapes(self, requests: Sequence[Request]) -> list[Shape]:
        """Of each kind that the draft proposes on all ranks (on rank 0)."""
        pipeline, draft = self.pipeline, self.pipeline.main_draft
        if draft.depth == 0:
            return [Shape()]
        longest = max(len(r.token_ids) for r in requests) + TOKENS
        room = max(1, pipeline.target.context - longest - 1)
        whole = WholeDraft(draft, room, pipeline.target.vocab_size)
        short = [replace(r, max_new_tokens=TOKENS) for r in requests]
        twice = [prefix(2 * piece) for piece in pieces(requests, pipeline.checkpoint.eos_ids)]
        short += [replace(short[0], token_ids=begun.prompt) for begun in twice]
        forced = {begun.prompt: begun.forced for begun in twice}
        watched = Watched(pipeline.sampler, (), forced)
        pipeline.generate(pipeline.engine_with(whole, None, watched), short)
        found: dict[Hashable, Shape] = {}
        for shapes in pipeline.ranks.gather(whole.shapes) or []:
            for shape in shapes.values():
                keep_largest(found, shape)
        return list(found.values())
