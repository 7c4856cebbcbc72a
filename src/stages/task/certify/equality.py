"""Token equality with plain decoding, prompt by prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from draftmesh.registry import build
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.draft import Draft
from draftmesh.registry.contracts.engine import Engine
from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.divergence import Divergence, divergences
from draftmesh.stages.task.certify.rounding import Judged, judge
from draftmesh.stages.task.certify.share import share
from draftmesh.stages.task.certify.watch import Place, Watched


@dataclass
class Equality:
    """What became of the prompts that were compared (on rank 0; elsewhere this rank's own).

    counters: of the configured method; reading_s, writing_s: seconds of prefills and of the rest,
    both sides together.
    """

    prompts: int = 0
    tokens: int = 0
    counters: Counters = field(default_factory=Counters)
    reading_s: float = 0.0
    writing_s: float = 0.0
    diverged: list[Judged] = field(default_factory=list)

    @property
    def unexplained(self) -> list[Judged]:
        """The divergences that rounding cannot explain."""
        return [judged for judged in self.diverged if not judged.explained]


class Comparison:
    """The configured method and plain decoding of the same pipeline, on the same requests.

    Plain decoding has no draft and the `match` verifier, whatever verifier is configured.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.nothing: Draft = pipeline.draft({"name": "none"})
        self.match = build("verifier", {"name": "match"})
        self.ours: Engine = pipeline.engine_with(pipeline.main_draft)
        self.plain: Engine = pipeline.engine_with(self.nothing, self.match)

    def run(
        self, requests: Sequence[Request], late: Callable[[], bool] = lambda: False
    ) -> Equality:
        """Compare, a batch at a time, until `late` says so (asked after the first batch)."""
        result = Equality()
        size = self.pipeline.spec.batch_size * self.pipeline.ranks.dp
        for start in range(0, len(requests), size):
            if start and late():
                break
            self._chunk(requests[start : start + size], result)
        return result

    def _chunk(self, requests: Sequence[Request], result: Equality) -> None:
        ours = self.pipeline.generate(self.ours, requests)
        plain = self.pipeline.generate(self.plain, requests)
        first = self.pipeline.ranks.rank == 0
        found = divergences(ours, plain) if first else []
        result.prompts += len(requests)
        result.tokens += sum(len(c.token_ids) for c in plain.completions)
        result.counters = result.counters.merge(ours.counters)
        for counters in (ours.counters, plain.counters):
            result.reading_s += counters.prefill_s
            result.writing_s += counters.wall_s - counters.prefill_s
        places = share(self.pipeline.ranks, [divergence.place for divergence in found])
        if places:
            result.diverged += self._judge(found, requests, [tuple(place) for place in places])

    def _judge(
        self, found: list[Divergence], requests: Sequence[Request], places: list[Place]
    ) -> list[Judged]:
        """Run the batch again, looking at the distributions where it went apart."""
        pipeline, seen = self.pipeline, []
        for draft, verifier in ((pipeline.main_draft, None), (self.nothing, self.match)):
            watched = Watched(pipeline.sampler, places)
            pipeline.generate(pipeline.engine_with(draft, verifier, watched), requests)
            seen.append(watched.means(pipeline.ranks))
        loop, plain = seen
        greedy, dtype = pipeline.sampler.greedy, pipeline.target.dtype
        return [judge(d, loop.get(d.place), plain.get(d.place), greedy, dtype) for d in found]
