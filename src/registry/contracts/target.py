"""The target model, wrapped without copying its modelling code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Cache(Protocol):
    """Preallocated key/value slots with a length per sequence.

    A forward writes its T tokens to the slots behind each row's length (plus `offset`); nothing
    counts until `keep` or `advance` says so, so rolling back costs nothing.
    """

    lengths: Tensor
    """[B] int64: committed tokens per row."""

    capacity: int

    def advance(self, counts: Tensor) -> None:
        """Commit the first counts [B] of the tokens written behind each row's length."""
        ...

    def keep(self, path: Tensor, counts: Tensor) -> None:
        """Commit a path: of the tokens written behind each row's length, those at path [B, D]
        (offsets, increasing per row; the first counts [B] count) move to the front and stay."""
        ...

    def select(self, rows: Tensor) -> None:
        """Keep only rows [B'] int64, in that order."""
        ...


@dataclass(frozen=True)
class Forward:
    """A forward's results: logits [B, M, V] at the asked positions (None if it stopped before the
    LM head), hidden [B, T, H] (the output of the last layer that ran; after the final norm if all
    ran), features {layer id: [B, T, H]} for the captured layers."""

    logits: Tensor | None
    hidden: Tensor
    features: dict[int, Tensor]


class Target(Protocol):
    """A decoder-only causal LM."""

    model: Any
    config: Any
    num_layers: int
    hidden_size: int
    vocab_size: int
    context: int
    dtype: torch.dtype
    device: torch.device
    speculative: bool
    """Whether written tokens can be taken back; if not, only plain decoding works."""

    def new_cache(self, rows: int, capacity: int) -> Cache:
        """An empty cache for sequences of at most `capacity` tokens, drafts included."""
        ...

    def embed(self, tokens: Tensor) -> Tensor:
        """tokens [...] -> [..., H]; called by every rank of a tensor-parallel group."""
        ...

    def norm(self, hidden: Tensor) -> Tensor:
        """The final norm."""
        ...

    def lm_head(self, hidden: Tensor) -> Tensor:
        """Final-normed hidden [..., H] -> logits [..., V]; called by every rank of a TP group."""
        ...

    def forward(
        self,
        inputs: Tensor,
        cache: Cache,
        *,
        parents: Tensor | None = None,
        valid: Tensor | None = None,
        offset: int = 0,
        layers: Sequence[int] | None = None,
        capture: Sequence[int] = (),
        logits_at: Tensor | None = None,
    ) -> Forward:
        """Run T new tokens per row behind the cache's committed ones.

        inputs: token ids [B, T] int64, or hidden states [B, T, H] to resume at layers[0].
        parents [B, offset + T] int64: the tree of all uncommitted tokens, the `offset` earlier ones
        first: index of the token before each, -1 for the committed prefix; None is a chain. A token
        sits at position length + its depth and attends to the prefix, its ancestors and itself.
        valid [B, T] bool: False marks padding, which is never attended to, routed or counted.
        offset: how many uncommitted tokens earlier forwards wrote behind each row's length, which
        these tokens continue (a draft that grows token by token or level by level).
        layers: the layers to run, increasing; None is all. Stopping early skips norm and LM head.
        logits_at [B, M] int64: token indices to compute logits at; None is all T.
        """
        ...
