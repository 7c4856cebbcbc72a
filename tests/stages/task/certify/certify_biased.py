"""Stages that are not lossless although they claim to be, one for each way to get it wrong."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import register
from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution, History
from draftmesh.registry.contracts.verifier import Outcome
from draftmesh.stages.draft.self import SelfDraft
from draftmesh.stages.engine.native import NativeEngine
from draftmesh.stages.verifier.match import Match
from draftmesh.stages.verifier.ratio import Ratio

TEMPERATURE = 0.7


def hotter(probs: Tensor) -> Tensor:
    """The distribution of temperature 1 where a temperature of 0.7 was asked for."""
    raised = probs**TEMPERATURE
    return raised / raised.sum(-1, keepdim=True)


class Tampered:
    """A chance with other probabilities than those it is asked for."""

    def __init__(self, chance: Chance, factor: float = 1.0, hot: frozenset[int] = frozenset()):
        self.chance, self.factor, self.hot = chance, factor, hot

    def accept(self, probability: Tensor, *key: Any) -> Tensor:
        return self.chance.accept(probability.clamp(max=1) * self.factor, *key)

    def sample(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        probs = hotter(probs) if stream in self.hot else probs
        return self.chance.sample(probs, rows, positions, stream)


@register("verifier", "reluctant")
class Reluctant(Ratio):
    """Accepts with 0.9 min(1, p/q) and leaves the residual as it is."""

    @dataclass(frozen=True)
    class Config:
        name: str = "reluctant"

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        return super().verify(proposal, target, Tampered(chance, 0.9), positions)


@register("verifier", "hot_bonus")
class HotBonus(Ratio):
    """Draws the token after a fully accepted draft without the temperature."""

    @dataclass(frozen=True)
    class Config:
        name: str = "hot_bonus"

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        hot = frozenset({Stream.TARGET}) if proposal.size else frozenset()
        return super().verify(proposal, target, Tampered(chance, hot=hot), positions)


@register("verifier", "raw_match")
class RawMatch(Match):
    """Matches against the distribution without the temperature."""

    @dataclass(frozen=True)
    class Config:
        name: str = "raw_match"

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        if target.probs is not None and proposal.size:
            target = Distribution(hotter(target.probs))
        return super().verify(proposal, target, chance, positions)


@register("verifier", "again")
class Again(Ratio):
    """Draws a rejected position again with the noise that rejected it."""

    @dataclass(frozen=True)
    class Config:
        name: str = "again"

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        outcome = super().verify(proposal, target, chance, positions)
        rows = torch.arange(len(positions))
        chance.accept(torch.full(rows.shape, 0.5), rows, positions, Stream.ACCEPT)
        return outcome


@register("verifier", "greedy_tail")
class GreedyTail(Match):
    """Accepts one drafted token more than it should when decoding greedily."""

    @dataclass(frozen=True)
    class Config:
        name: str = "greedy_tail"

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        outcome = super().verify(proposal, target, chance, positions)
        more = outcome.accepted < proposal.valid.sum(1)
        path = outcome.path.clone()
        for row in more.nonzero().flatten().tolist():
            path[row, outcome.accepted[row]] = outcome.accepted[row]
        return replace(outcome, path=path, accepted=outcome.accepted + more)


@register("draft", "liar")
class Liar(SelfDraft):
    """Samples from one distribution and hands on a flatter one."""

    @dataclass(frozen=True)
    class Config(SelfDraft.Config):
        name: str = "liar"

    def propose(self, budget: Tensor) -> Proposal:
        proposal = super().propose(budget)
        return proposal if proposal.q is None else replace(proposal, q=hotter(proposal.q))


@register("engine", "raw")
class RawEngine(NativeEngine):
    """Verifies drafts without the logits processors."""

    @dataclass(frozen=True)
    class Config:
        name: str = "raw"

    def __init__(self, config: Any, checkpoint: Any, target: Any, draft: Any, *others: Any) -> None:
        verifier, sampler, ranks = others
        super().__init__(config, checkpoint, target, draft, verifier, Raw(sampler), ranks)


class Raw:
    """The processors for the first token, the bare softmax for all others."""

    def __init__(self, sampler: Any) -> None:
        self.sampler, self.greedy, self.uses_history = sampler, sampler.greedy, True

    def __call__(self, logits: Tensor, history: History) -> Distribution:
        if logits.shape[1] == 1:
            return self.sampler(logits, history)
        return Distribution(logits.float().softmax(-1))
