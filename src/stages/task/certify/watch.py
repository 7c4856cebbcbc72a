"""A sampler that writes down the distributions of chosen places, and can force first tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from draftmesh.registry.contracts.ranks import Ranks
from draftmesh.registry.contracts.sampling import Distribution, History, Sampler

Place = tuple[int, ...]
"""Token ids from the first of the prompt on; a distribution is that of the token after them."""

Sums = dict[Place, tuple[Tensor, int]]


@dataclass
class Watched:
    """Stands in for an engine's sampler; everything else goes through the real one.

    `places`: where to look. `forced` {prompt: token}: the first token after that prompt is this one
    for certain, so that many requests go on from the same prefix. `sums` {place: (sum of the
    distributions seen there [V], how many)}; a greedy sampler's are the softmax of its scores.
    """

    sampler: Sampler
    places: Iterable[Place] = ()
    forced: Mapping[Place, int] = field(default_factory=dict)
    uses_history: bool = True
    sums: Sums = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.greedy = self.sampler.greedy
        self.places = tuple(self.places)

    def __call__(self, logits: Tensor, history: History | None = None) -> Distribution:
        """See Sampler."""
        assert history is not None
        known = history if self.sampler.uses_history else None
        distribution = self.sampler(logits, known)
        rows = _committed(history)
        found = [
            (row, node, place)
            for row, tokens in enumerate(rows)
            for place in self.places
            if (node := _node(history, row, tokens, place)) is not None
        ]
        if found:
            self._write_down(found, logits, known, distribution)
        return self._force(distribution, rows) if self.forced else distribution

    def log_probs(self, logits: Tensor, history: History | None = None) -> Tensor:
        """See Sampler."""
        return self.sampler.log_probs(logits, history if self.sampler.uses_history else None)

    def _write_down(
        self,
        found: list[tuple[int, int, Place]],
        logits: Tensor,
        history: History | None,
        distribution: Distribution,
    ) -> None:
        probs = distribution.probs
        if probs is None:
            probs = self.sampler.log_probs(logits, history).exp()
        for row, node, place in found:
            seen = probs[row, node].double().cpu()
            if distribution.usable is None or bool(distribution.usable[row, node]):
                total, count = self.sums.get(place, (torch.zeros_like(seen), 0))
                self.sums[place] = (total + seen, count + 1)

    def _force(self, distribution: Distribution, rows: list[Place]) -> Distribution:
        lines = [row for row, tokens in enumerate(rows) if tokens in self.forced]
        if not lines:
            return distribution
        probs, tokens = distribution.probs, distribution.tokens
        wanted = [self.forced[rows[line]] for line in lines]
        if probs is not None:
            probs = probs.clone()
            probs[lines, 0] = 0
            probs[lines, 0, wanted] = 1
        if tokens is not None:
            tokens = tokens.clone()
            tokens[lines, 0] = tokens.new_tensor(wanted)
        return replace(distribution, probs=probs, tokens=tokens)

    def means(self, ranks: Ranks) -> dict[Place, Tensor]:
        """{place: mean distribution [V]} over all ranks, on rank 0 only (elsewhere empty)."""
        parts = ranks.gather(self.sums)
        merged: Sums = {}
        for part in parts or []:
            for place, (total, count) in part.items():
                before, seen = merged.get(place, (torch.zeros_like(total), 0))
                merged[place] = (before + total, seen + count)
        return {place: total / count for place, (total, count) in merged.items()}


def _committed(history: History) -> list[Place]:
    lengths = history.lengths.tolist()
    return [
        tuple(line[:length]) for line, length in zip(history.tokens.tolist(), lengths, strict=True)
    ]


def _node(history: History, row: int, tokens: Place, place: Place) -> int | None:
    """The node (0 is the root) whose path leads to a place; None if none does."""
    if place[: len(tokens)] != tokens:
        return None
    at = -1
    drafted = history.node_tokens[row].tolist()
    parents = history.parents[row].tolist()
    for wanted in place[len(tokens) :]:
        below = (j for j, p in enumerate(parents) if p == at and drafted[j] == wanted)
        at = next(below, -2)
        if at == -2:
            return None
    return at + 1
