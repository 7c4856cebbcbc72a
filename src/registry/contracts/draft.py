"""What a draft strategy proposes and what it is told."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.target import Cache


@dataclass(frozen=True)
class Proposal:
    """Draft tokens as one tree per sequence; a chain is a tree whose parents are -1, 0, 1, ...

    tokens [B, N] int64, parents [B, N] int64 (-1 is the root, the last committed token; a parent
    comes before its children), valid [B, N] bool (trees may be ragged; a valid node's parent is
    valid).

    `q` [B, M, V] holds the distributions, after the same processors as the target's, that sampled
    tokens were drawn from, and `q_index` [B, N] int64 says which of them each node used; -1 marks a
    token chosen deterministically (a one-hot q). `replacement` says how siblings were sampled.
    `fixed_shape` is False when the tree's shape depended on the sampled tokens' own scores (dynamic
    trees), which only `match` verifies without bias.

    A self-speculating draft also hands back `hidden` [B, N + 1, H], the hidden states of the root
    and the nodes at the input of layer `resume_layer`, with the cache of the layers before it
    written.
    """

    tokens: Tensor
    parents: Tensor
    valid: Tensor
    q: Tensor | None = None
    q_index: Tensor | None = None
    replacement: bool = True
    fixed_shape: bool = True
    hidden: Tensor | None = None
    resume_layer: int = 0

    @property
    def size(self) -> int:
        """N."""
        return self.tokens.shape[1]

    @property
    def is_chain(self) -> bool:
        """Whether every row is a chain."""
        steps = torch.arange(-1, self.size - 1, device=self.parents.device)
        return bool((self.parents == steps).all())

    @staticmethod
    def empty(rows: int, device: torch.device) -> "Proposal":
        """No draft tokens: the next step is plain decoding."""
        nothing = torch.empty(rows, 0, dtype=torch.long, device=device)
        return Proposal(nothing, nothing, nothing.bool())

    @staticmethod
    def chain(tokens: Tensor, valid: Tensor, q: Tensor | None = None) -> "Proposal":
        """A chain: tokens [B, K], valid [B, K] (a prefix of each row), q [B, K, V] when sampled."""
        rows, k = tokens.shape
        steps = torch.arange(k, device=tokens.device)
        return Proposal(
            tokens,
            (steps - 1).expand(rows, k),
            valid,
            q,
            None if q is None else steps.expand(rows, k),
        )


@dataclass(frozen=True)
class Step:
    """What the target has just processed and what it chose next.

    tokens [B, T] int64: tokens that went through the target and stay (the prompt at first, later
    the root and the accepted path), left-aligned; lengths [B] how many count. positions [B, T].
    features {layer id: [B, T, H]} are the target's hidden states at the layers the draft asked for:
    id i < L is the input of layer i, id L the output of the final norm. next [B] int64: the token
    chosen after them (the bonus token), the root of the next proposal, not yet seen by the target.
    """

    tokens: Tensor
    lengths: Tensor
    positions: Tensor
    features: dict[int, Tensor]
    next: Tensor


@dataclass(frozen=True)
class Rows:
    """The sequences of a batch at its start, and the chance keyed to them.

    capacity is the longest sequence, in tokens, that any of them can become, draft nodes included.
    `cache` is the target's own, for self-speculation; the engine commits and drops its rows.
    """

    requests: tuple[Request, ...]
    chance: Chance
    capacity: int
    cache: Cache


class Draft(Protocol):
    """A draft strategy. One instance serves one batch after another."""

    capture: tuple[int, ...]
    """Layer ids of the target whose hidden states `observe` needs (see Step.features)."""

    depth: int
    """Longest path a proposal can have; 0 for plain decoding."""

    nodes: int
    """Most nodes a proposal can have."""

    target_forwards: int
    """Partial target forwards (with their collectives) in one `propose`; 0 for most drafts."""

    def start(self, rows: Rows) -> None:
        """A new batch; `observe` with the prompts follows."""
        ...

    def observe(self, step: Step) -> None:
        """The target has processed a step (the prompt is one too)."""
        ...

    def propose(self, budget: Tensor) -> Proposal:
        """Draft after the last step's `next`; budget [B] int64: longest path wanted (>= 0)."""
        ...

    def drop(self, keep: Tensor) -> None:
        """Keep only the rows in keep [B'] int64, in that order."""
        ...

    def idle(self) -> None:
        """Enter the collectives of one `propose` with no valid token, because another rank drafts;
        nothing to do when `target_forwards` is 0."""
        ...
