"""Token equality as a check."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.equality import Comparison, Equality
from draftmesh.stages.task.certify.part import Part, untested
from draftmesh.stages.task.certify.sizes import Pace, fit_requests

WARM_UP_TOKENS, TRIAL_TOKENS = 2, 6


class TokenCheck:
    """A pipeline's tokens beside those of plain decoding.

    `must` says that they have to be equal (up to rounding); else it only reports. `metric` is the
    name under which the share of equal prompts goes into the results. `note` says what is not as
    configured, for example fewer layers.
    """

    def __init__(
        self,
        name: str,
        title: str,
        pipeline: Pipeline,
        requests: Sequence[Request],
        *,
        must: bool,
        metric: str,
        note: str | None = None,
    ) -> None:
        self.name, self.title, self.metric, self.must = name, title, metric, must
        self.notes = [note] if note else []
        self.pipeline, self.requests = pipeline, requests
        self.comparison = Comparison(pipeline)
        self.pace = self._measured()
        self.cost = sum(self.pace.cost(requests))

    def run(self, seconds: float, late: Callable[[], bool]) -> Part:
        """Compare as many prompts as fit."""
        begin = perf_counter()
        sized = fit_requests(self.requests, self.pace, seconds)
        notes = [*self.notes, *([f"{sized.note} (task.budget)"] if sized.note else [])]
        found = self.comparison.run(sized.requests, late)
        if found.prompts < len(sized.requests):
            notes.append(f"stopped after {found.prompts} prompts (task.budget)")
        if self.must and self.pipeline.main_draft.depth and not found.counters.accepted:
            notes.append(untested(found.counters))
        return Part(
            self.name,
            self.title,
            not found.unexplained if self.must else None,
            self._summary(found),
            tuple(notes),
            {
                "prompts": found.prompts,
                "equal_prompts": found.prompts - len(found.diverged),
                "tokens": found.tokens,
                "drafted": found.counters.drafted,
                "accepted": found.counters.accepted,
                "divergences": [judged.record() for judged in found.diverged],
            },
            {self.metric: 1 - len(found.diverged) / found.prompts},
            perf_counter() - begin,
        )

    def _summary(self, found: Equality) -> str:
        equal = found.prompts - len(found.diverged)
        text = f"{self.title} equal plain decoding's for {equal} of {found.prompts} prompts"
        shown = found.unexplained or found.diverged
        if not shown:
            return text
        first = min(shown, key=lambda judged: judged.divergence.at)
        margin = "" if first.margin is None else f", top-2 margin {first.margin:.2g}"
        why = "" if found.unexplained else ", by rounding"
        return f"{text} (first divergence at token {first.divergence.at + 1}{margin}{why})"

    def _measured(self) -> Pace:
        """A few tokens of the first batch, after a warm-up."""
        size = self.pipeline.spec.batch_size * self.pipeline.ranks.dp
        some = self.requests[:size]
        for tokens in (WARM_UP_TOKENS, TRIAL_TOKENS):
            trial = self.comparison.run([replace(r, max_new_tokens=tokens) for r in some])
        times = [int(1e6 * seconds) for seconds in (trial.reading_s, trial.writing_s)]
        reading, writing = self.pipeline.ranks.agree(*times)
        read = sum(len(r.token_ids) for r in some)
        return Pace(reading / 1e6 / read, max(writing, 1) / 1e6 / (TRIAL_TOKENS * len(some)))
