"""Many completions after one forced prefix, and the distributions they should come from."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from torch import Tensor

from draftmesh.registry import UserError, build
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.prefix import LONGEST, Prefix, interest, pieces, prefix
from draftmesh.stages.task.certify.share import share
from draftmesh.stages.task.certify.watch import Place, Watched
from draftmesh.stages.task.certify.whole import WholeDraft

NEW_TOKENS = 3
"""The forced one and the two that are tested."""
TRIAL_NUMBERS = 1 << 20
"""Request numbers of trials start here, so that no draw of the test repeats their noise."""
FIRST_TOKENS = 16
"""Likeliest first tokens after which the second one is looked at."""
MOST_ROWS = 256
LOGITS_BYTES = 1 << 26

Pair = tuple[int, int | None]
"""The two tokens after the prefix; the second is missing if the first ended the completion."""


@dataclass
class Draws:
    """What came out, and the mean distributions met in the decode loop (on rank 0)."""

    pairs: Counter[Pair] = field(default_factory=Counter)
    asked: int = 0
    counters: Counters = field(default_factory=Counters)
    loop: dict[Place, Tensor] = field(default_factory=dict)


class Drawing:
    """Draws from the decode loop of a pipeline, in batches of many equal rows.

    Every proposal has full depth, as in the middle of a completion. All methods are called by every
    rank; only rank 0's answers count.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        target, draft = pipeline.target, pipeline.main_draft
        room = target.context - LONGEST - NEW_TOKENS - 1
        self.draft = WholeDraft(draft, room, target.vocab_size)
        row = 4 * target.vocab_size * (draft.nodes + 1)
        self.rows = max(1, min(MOST_ROWS, LOGITS_BYTES // row))
        self.together = self.rows * pipeline.ranks.dp
        self.seconds_per_draw = 0.0

    def choose(self, requests: Sequence[Request]) -> Prefix:
        """The piece of the prompts that tests the draft best; also measures what a draw costs."""
        candidates = self._candidates(pieces(requests, self.pipeline.checkpoint.eos_ids))
        watched = Watched(
            self.pipeline.sampler, [c.tokens for c in candidates], _forced(*candidates)
        )
        numbers = range(TRIAL_NUMBERS, TRIAL_NUMBERS + len(candidates))
        trial = [r for c, n in zip(candidates, numbers, strict=True) for r in self._requests(c, n)]
        firsts: dict[Place, Tensor] = {}
        for start in range(0, len(trial), self.together):
            self._generate(trial[start : start + self.together], watched)
            for found in self.pipeline.ranks.gather(self.draft.firsts) or []:
                firsts |= found
        seen = watched.means(self.pipeline.ranks)
        scores = [
            interest(seen[c.tokens], firsts.get(c.prompt)) if c.tokens in seen else 0.0
            for c in candidates
        ]
        best = max(range(len(candidates)), key=scores.__getitem__)
        ((best,),) = share(self.pipeline.ranks, [[best]])
        self._measure(candidates[best])
        return candidates[best]

    def reference(self, chosen: Prefix) -> dict[Place, Tensor]:
        """Plain decoding's distributions after the prefix and after its likeliest next tokens, each
        from one forward over all the tokens (on rank 0); the same places on every rank."""
        pipeline = self.pipeline
        first = self._plain([chosen.tokens]).get(chosen.tokens)
        likely: list[list[int]] = []
        if pipeline.ranks.rank == 0:
            assert first is not None
            best = first.topk(min(FIRST_TOKENS, len(first)))
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            likely = [[token] for token, p in pairs if p > 0]
        likely = share(pipeline.ranks, likely)
        ends = pipeline.checkpoint.eos_ids
        places = [(*chosen.tokens, token) for (token,) in likely if token not in ends]
        found = self._plain(places)
        if first is not None:
            found[chosen.tokens] = first
        self.places = (chosen.tokens, *places)
        return found

    def run(self, chosen: Prefix, count: int, late: Callable[[], bool]) -> Draws:
        """At least `count` draws, unless `late` says to stop (asked after every batch)."""
        watched = Watched(self.pipeline.sampler, self.places, _forced(chosen))
        result = Draws()
        while result.asked < count:
            if result.asked and late():
                break
            asked = self._requests(chosen, result.asked, self.together)
            done = self._generate(asked, watched)
            result.asked += self.together
            result.counters = result.counters.merge(done.counters)
            result.pairs.update(_pair(c, chosen.forced) for c in done.completions)
        result.loop = watched.means(self.pipeline.ranks)
        return result

    def _candidates(self, some: Sequence[Place]) -> list[Prefix]:
        """The pieces, and each a second time after itself and the target's likeliest next token,
        which a draft that looks for repetitions will propose again."""
        after = self._plain(some)
        best = [[int(after[piece].argmax())] for piece in some] if after else []
        likely = share(self.pipeline.ranks, best)
        ends = self.pipeline.checkpoint.eos_ids
        again = [
            (*piece, token, *piece)
            for piece, (token,) in zip(some, likely, strict=True)
            if token not in ends
        ]
        found = [prefix(tokens) for tokens in (*some, *again)]
        return list({begun.prompt: begun for begun in found}.values())

    def _measure(self, chosen: Prefix) -> None:
        watched = Watched(self.pipeline.sampler, (chosen.tokens,), _forced(chosen))
        begin = perf_counter()
        self._generate(self._requests(chosen, 2 * TRIAL_NUMBERS, self.together), watched)
        microseconds = int(1e6 * (perf_counter() - begin))
        (agreed,) = self.pipeline.ranks.agree(microseconds)
        self.seconds_per_draw = agreed / 1e6 / self.together

    def _requests(self, chosen: Prefix, first: int, count: int = 1) -> list[Request]:
        numbers = range(first, first + count)
        return chosen.requests(numbers, self.pipeline.spec.seed, NEW_TOKENS)

    def _generate(self, requests: Sequence[Request], watched: Watched) -> Generation:
        engine = self.pipeline.engine_with(self.draft, None, watched)
        return self.pipeline.generate(engine, requests, batch_size=self.rows)

    def _plain(self, places: Sequence[Place]) -> dict[Place, Tensor]:
        pipeline = self.pipeline
        watched = Watched(pipeline.sampler, places)
        match = build("verifier", {"name": "match"})
        engine = pipeline.engine_with(pipeline.draft({"name": "none"}), match, watched)
        requests = [Request(f"place-{i}", "", p, i, 0, 1) for i, p in enumerate(places)]
        pipeline.generate(engine, requests, batch_size=1)
        return watched.means(pipeline.ranks)


def _forced(*prefixes: Prefix) -> Mapping[Place, int]:
    return {prefix.prompt: prefix.forced for prefix in prefixes}


def _pair(completion: Completion, forced: int) -> Pair:
    tokens = completion.token_ids
    if tokens[0] != forced:
        raise UserError("task=certify cannot force a prefix upon this engine: use engine=native")
    return tokens[1], tokens[2] if len(tokens) > 2 else None
