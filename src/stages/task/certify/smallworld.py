"""A made-up language model of a few tokens, seen through the run's own processors."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import build
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution, History, Sampler
from draftmesh.stages.verifier.exactness import Path, paths_of

VOCABULARY, LARGER = 4, 6
PREFIX = (0, 1)
"""One token of prompt and the root."""
SPREAD = 0.8
"""Deviation of the logits."""


class SmallWorld:
    """Random float64 logits after every path; the draft's are the target's plus `noise`.

    `after` and `draft` are conditionals, of plain decoding and of a draft; `look` gives what a
    decode loop would: the processors see all nodes of a proposal in one call.
    """

    def __init__(
        self, sampling: Mapping[str, Any], vocabulary: int, seed: int, noise: float
    ) -> None:
        self.vocabulary, self.seed, self.noise = vocabulary, seed, noise
        options = reduced_options(sampling, vocabulary)
        self.sampler: Sampler = build("sampling", options, vocabulary, vocabulary)
        self._known: dict[tuple[int, Path], Tensor] = {}

    def after(self, path: Path) -> Tensor:
        """The target's distribution [V] after a path."""
        return self._plain(path, 0)

    def draft(self, path: Path) -> Tensor:
        """The draft's distribution [V] after a path."""
        return self._plain(path, 1)

    def look(self, proposal: Proposal) -> Distribution:
        """The target's distributions at the root and all nodes of a proposal (one row)."""
        logits = torch.stack([self._logits(path) for path in [(), *paths_of(proposal)]])
        return self.sampler(logits.unsqueeze(0), _history((), proposal.tokens, proposal.parents))

    def _plain(self, path: Path, side: int) -> Tensor:
        if (side, path) not in self._known:
            nothing = torch.empty(1, 0, dtype=torch.long)
            logits = self._logits(path) + side * self.noise * self._random(path, 1)
            seen = self.sampler(logits.view(1, 1, -1), _history(path, nothing, nothing))
            self._known[side, path] = dense(seen, self.vocabulary)[0, 0]
        return self._known[side, path]

    def _logits(self, path: Path) -> Tensor:
        return SPREAD * self._random(path, 0)

    def _random(self, path: Path, stream: int) -> Tensor:
        seed = hash((self.seed, stream, *path)) % 2**31
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(self.vocabulary, generator=generator, dtype=torch.float64)


def dense(distribution: Distribution, vocabulary: int) -> Tensor:
    """Probabilities [B, M, V]; one-hot for greedy decoding."""
    if distribution.probs is not None:
        return distribution.probs
    assert distribution.tokens is not None
    return torch.nn.functional.one_hot(distribution.tokens, vocabulary).double()


def vocabulary_for(sampling: Mapping[str, Any]) -> int:
    """Tokens that a small world needs: more if no token may occur twice."""
    return LARGER if sampling.get("no_repeat_ngram") == 1 else VOCABULARY


def reduced_options(sampling: Mapping[str, Any], vocabulary: int) -> dict[str, Any]:
    """The run's sampling options for a few tokens: a top-k that still cuts, biases on known ids."""
    options = dict(sampling)
    if options.get("top_k"):
        options["top_k"] = min(options["top_k"], vocabulary - 1)
    if options.get("logit_bias"):
        biases = list(options["logit_bias"].values())[: vocabulary - 1]
        options["logit_bias"] = dict(enumerate(biases))
    return options


def _history(path: Path, nodes: Tensor, parents: Tensor) -> History:
    tokens = torch.tensor([[*PREFIX, *path]])
    lengths = torch.tensor([tokens.shape[1]])
    return History(tokens, lengths, nodes, parents, torch.tensor([1]))
