"""The only source of randomness a stage may use."""

from enum import IntEnum
from typing import Protocol

from torch import Tensor


class Stream(IntEnum):
    """Independent noise streams at one position of one request.

    The low bits are free: `Stream.ACCEPT + j` is the acceptance draw of the j-th sibling.
    A draft draws its i-th node with `Stream.DRAFT + i` at the first position of its proposal, not
    at the node's own: what `block` keeps depends on what was drafted after it, so the next proposal
    must not meet those draws again.
    """

    TARGET = 0
    RESIDUAL = 1 << 16
    ACCEPT = 2 << 16
    DRAFT = 3 << 16


class Chance(Protocol):
    """Draws keyed by (row of the batch, absolute position of the token being chosen, stream).

    Calling twice with the same keys gives the same draws. Tests inject an implementation that
    enumerates every outcome of the real code with its exact probability.
    """

    def sample(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """Draw one token per line.

        probs [R, V] (need not be normalised), rows [R] and positions [R] int64 -> ids [R] int64.
        Gumbel-max with noise keyed by token id: lines with equal keys and similar `probs` tend to
        draw the same token.
        """
        ...

    def accept(self, probability: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """True with the given probability [R] (values outside [0, 1] are clamped) -> bool [R]."""
        ...

    def scores(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """The noise behind `sample` made visible: float64 [R, V] >= 0, 0 where probs [R, V] is 0.

        The largest entry of a line is the token that `sample` draws with the same keys, so a draft
        that ranks by these scores is likely to have the target's own pick among its first few. They
        show more than one draw, so only a verifier that is lossless for every draft may follow.
        """
        ...
