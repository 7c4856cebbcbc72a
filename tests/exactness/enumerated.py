"""The exact distribution of what the decode loop emits in one step, drafting and verifying."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from harness import Build, Setup, requests, rerun, run_engine
from torch import Tensor

from draftmesh.registry import build
from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.draft import Draft, Proposal, Step
from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.sampling import History
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.engine import batch
from draftmesh.stages.sampling.enumerated import outcomes
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.verifier.exactness import Conditional, Path, plain_distribution

NEW = 8


class StepDone(Exception):
    """One step after the prompt is enough."""


class OneStep:
    """A draft that ends the run after its first proposal was verified, and tells what came out."""

    def __init__(self, inner: Draft) -> None:
        self.inner, self.proposed = inner, False
        self.emitted: Path = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def propose(self, budget: Tensor) -> Proposal:
        """Only once."""
        if self.proposed:
            raise StepDone
        self.proposed = True
        return self.inner.propose(budget)

    def observe(self, step: Step) -> None:
        """Remember what the first row has emitted."""
        if self.proposed:
            accepted = step.tokens[0, 1 : int(step.lengths[0])].tolist()
            self.emitted = (*accepted, int(step.next[0]))
        self.inner.observe(step)


class FirstRow:
    """Enumerated chance for the first row behind its first token, real noise for all else."""

    def __init__(self, chance: Chance, asked: Sequence[Request]) -> None:
        self.chance, self.noise = chance, NoiseChance.of(asked, torch.device("cpu"))
        self.start = len(asked[0].token_ids)

    def sample(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """See Chance."""
        return self._draw("sample", probs, rows, positions, stream)

    def accept(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """See Chance."""
        return self._draw("accept", probs, rows, positions, stream)

    def _draw(
        self, how: str, probs: Tensor, rows: Tensor, positions: Tensor, stream: int
    ) -> Tensor:
        drawn: Tensor = getattr(self.noise, how)(probs, rows, positions, stream)
        mine = (rows == 0) & (positions > self.start)
        if bool(mine.any()):
            enumerate_ = getattr(self.chance, how)
            drawn[mine] = enumerate_(probs[mine], rows[mine], positions[mine], stream)
        return drawn


def step_distribution(
    setup: Setup,
    prompts: Sequence[Sequence[int]],
    draft: Build,
    verifier: str,
    sampling: dict[str, Any],
    length: int,
) -> tuple[Tensor, Tensor]:
    """Joint distributions [V, ..., V] of `length` tokens of the first prompt's completion behind
    its first token: by one step of the engine, continued by the target, and by the target alone."""
    asked = requests(prompts, max_new_tokens=NEW)

    def once(chance: Chance) -> Path:
        made: list[OneStep] = []

        def build_draft(context: DraftContext) -> OneStep:
            made.append(OneStep(draft(context)))
            return made[0]

        with enumerated(chance):
            try:
                run_engine(setup, asked, build_draft, verifier, sampling, len(prompts))
            except StepDone:
                return made[0].emitted
        raise AssertionError("the run ended within one step")

    (first,) = run_engine(setup, asked[:1], None, verifier, sampling).completions
    target = conditional(setup, (*prompts[0], first.token_ids[0]), len(prompts[0]), sampling)
    joint = torch.zeros([setup.target.vocab_size] * length, dtype=torch.float64)
    for weight, emitted in outcomes(once):
        extend(joint, emitted[:length], weight, target)
    return joint, plain_distribution(target, length)


@contextmanager
def enumerated(chance: Chance) -> Iterator[None]:
    """Batches opened inside draw from it."""

    class Opened(NoiseChance):
        @staticmethod
        def of(asked: Sequence[Request], device: torch.device) -> Any:
            return FirstRow(chance, asked)

    with patch.object(batch, "NoiseChance", Opened):
        yield


def conditional(
    setup: Setup, prefix: Sequence[int], prompt: int, sampling: dict[str, Any]
) -> Conditional:
    """The target's distribution after the prefix and a path, by re-running all of it."""
    vocab = setup.target.vocab_size
    sampler = build("sampling", {"name": "processors", **sampling}, vocab, vocab)
    nothing = torch.empty(1, 0, dtype=torch.long)

    @cache
    def after(path: Path) -> Tensor:
        ids = [*prefix, *path]
        history = History(
            torch.tensor([ids]), torch.tensor([len(ids)]), nothing, nothing, torch.tensor([prompt])
        )
        logits = rerun(setup.checkpoint.model, ids)[-1:]
        probs: Tensor = sampler(logits[None], history).probs
        return probs[0, 0]

    return after


def extend(joint: Tensor, tokens: Path, weight: float, target: Conditional) -> None:
    """Add a beginning of this weight, continued by the target."""
    if len(tokens) == joint.dim():
        joint[tokens] += weight
        return
    for token, p in enumerate(target(tokens).tolist()):
        if p > 0:
            extend(joint, (*tokens, token), weight * p, target)
