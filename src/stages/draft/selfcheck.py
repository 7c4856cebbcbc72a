"""How well a draft knows its model: the share of first choices they have in common on a text."""

import copy
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Draft, Rows, Step
from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors

LEAST = 0.15
"""A draft that agrees less often than this does not fit its model, or is read wrongly."""

_TEXT = (
    "The water cycle is the continuous movement of water on, above, and below the surface of the "
    "Earth. It starts when the sun heats the water in the oceans, and some of it evaporates into "
    "the air as water vapor. The vapor rises, cools, and condenses into clouds."
)
_PROMPT, _ROWS, _FEWEST = 6, 4, 4
"""Tokens before the first one that counts; rows checked together; fewest positions per row."""

log = logging.getLogger(__name__)


class Checkable(Draft, Protocol):
    """A draft with state of its own, which `start` makes anew, that picks by its context."""

    context: DraftContext


@dataclass(frozen=True)
class Reading:
    """A text as the target reads it: token ids [N], the captured hidden states {layer id:
    [1, N, H]}, and the target's first choice after each token [N]."""

    ids: Tensor
    features: dict[int, Tensor]
    choices: Tensor

    @property
    def roots(self) -> Tensor:
        """Where the draft is asked [_ROWS, S]: each row takes a stretch of the text."""
        count = (len(self.ids) - _PROMPT) // _ROWS
        steps = torch.arange(_ROWS * count, device=self.ids.device)
        return _PROMPT + steps.view(_ROWS, count)


def self_check(draft: Checkable, option: str, suspects: Mapping[str, Checkable]) -> float | None:
    """The share of positions, in a short built-in text, where the draft's first choice is the
    target's; None without a tokenizer or with a vocabulary or context too small for the text.

    Below LEAST it warns in one line (on rank 0) about `option`, the draft's option and value.
    `suspects` are other ways to read the same weights, keyed by what is wrong if they fit better;
    the best is named. One target forward, which every rank enters; the draft, the chance and the
    generators stay as they are.
    """
    context = draft.context
    layers = {layer for d in (draft, *suspects.values()) for layer in d.capture}
    reading = read(context, tuple(sorted(layers)))
    if reading is None:
        return None
    rate = agreement(draft, reading)
    if rate < LEAST:
        rates = {cause: agreement(other, reading) for cause, other in suspects.items()}
        if context.ranks.rank == 0:
            log.warning(_warning(option, rate, rates))
    return rate


def _warning(option: str, rate: float, rates: Mapping[str, float]) -> str:
    found = f"{option}: the draft's first choice is the model's on only {rate:.0%} of a test text"
    cause = max(rates, key=lambda name: rates[name], default="")
    if cause and rates[cause] >= max(LEAST, 2 * rate):
        return f"{found}; {cause} (that gives {rates[cause]:.0%})"
    return f"{found}; it was made for another model, or hardly trained: little will be accepted"


@torch.no_grad()
def read(context: DraftContext, layers: tuple[int, ...]) -> Reading | None:
    """Run the text through the target once, capturing some layers; None if it has no use here."""
    target, tokenizer = context.target, context.checkpoint.tokenizer
    if tokenizer is None:
        return None
    ids = tokenizer(_TEXT)["input_ids"][: target.context]
    if len(ids) < _PROMPT + _ROWS * _FEWEST or max(ids) >= target.vocab_size:
        return None
    tokens = torch.tensor([ids], device=target.device)
    valid = torch.ones_like(tokens, dtype=torch.bool)
    cache = target.new_cache(1, len(ids))
    forward = target.forward(tokens, cache, valid=valid, capture=layers)
    assert forward.logits is not None
    (choices,) = context.ranks.decide(forward.logits[0].argmax(-1))
    return Reading(tokens[0], forward.features, choices)


@torch.no_grad()
def agreement(draft: Checkable, reading: Reading) -> float:
    """The share of the text's positions where the draft's first choice is the target's."""
    roots = reading.roots
    probe = _started(draft, reading, roots[:, 0])
    budget = torch.ones_like(roots[:, 0])
    known, hits = torch.zeros_like(budget), 0
    for root in roots.unbind(1):
        probe.observe(_step(reading, known, root, draft.capture))
        proposal = probe.propose(budget)
        if proposal.size:
            right = proposal.tokens[:, 0] == reading.choices[root]
            hits += int((right & proposal.valid[:, 0]).sum())
        known = root
    return hits / roots.numel()


def _started(draft: Checkable, reading: Reading, prompts: Tensor) -> Checkable:
    """A copy of the draft that picks greedily, before prompts of these lengths."""
    context, ids = draft.context, reading.ids.tolist()
    probe = copy.copy(draft)
    sampler = Processors(SamplingOptions(), context.target.vocab_size)
    probe.context = replace(context, sampler=sampler, coupled=False)
    requests = tuple(
        Request("self-check", "", tuple(ids[:length]), row, 0, len(ids))
        for row, length in enumerate(prompts.tolist())
    )
    capacity = len(ids) + draft.nodes + 1
    cache = context.target.new_cache(len(requests), capacity)
    probe.start(Rows(requests, NoiseChance.of(requests, prompts.device), capacity, cache))
    return probe


def _step(reading: Reading, known: Tensor, root: Tensor, capture: tuple[int, ...]) -> Step:
    """What the decode loop would tell, per row, when it chose the token at `root` [B]: the tokens
    from `known` [B] up to it, with their hidden states."""
    lengths = root - known
    width = int(lengths.max())
    positions = known[:, None] + torch.arange(width, device=root.device)
    index = positions.clamp_max(len(reading.ids) - 1)
    features = {layer: reading.features[layer][0][index] for layer in capture}
    return Step(reading.ids[index], lengths, positions, features, reading.ids[root])
