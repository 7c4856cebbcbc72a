"""From logits to the distribution that tokens are drawn from."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Distribution:
    """Next-token distributions of B x N nodes after the processors.

    Greedy decoding stores only the argmax: `tokens` [B, N] int64, and `probs` is None.
    Sampling stores `probs` [B, N, V] (float32, or float64 in a float64 run), and `tokens` is None.
    `usable` [B, N] bool is false where no token can be chosen, because the logits are no numbers or
    the processors forbid every token: token 0 stands there. None: all are usable.
    """

    probs: Tensor | None = None
    tokens: Tensor | None = None
    usable: Tensor | None = None

    @property
    def greedy(self) -> bool:
        """Whether only the argmax is kept."""
        return self.probs is None

    def node(self, index: slice) -> "Distribution":
        """The same distributions at some of the nodes."""
        return Distribution(
            None if self.probs is None else self.probs[:, index],
            None if self.tokens is None else self.tokens[:, index],
            None if self.usable is None else self.usable[:, index],
        )


@dataclass(frozen=True)
class History:
    """The tokens before each of B x N nodes, for processors that look back (penalties).

    tokens [B, S] committed tokens, lengths [B] how many of them count (the last committed token is
    the root, node 0). node_tokens [B, N] and parents [B, N] describe the nodes after the root
    (parent -1 is the root); the distribution at node j >= 1 follows node_tokens[:, j - 1].
    prompts [B]: how many of the committed tokens are the prompt, which presence and frequency
    penalties do not count (None: none of them).
    """

    tokens: Tensor
    lengths: Tensor
    node_tokens: Tensor
    parents: Tensor
    prompts: Tensor | None = None

    def path(self, row: int, node: int) -> Tensor:
        """Token ids [L] of the prefix and the path down to a node (0 is the root)."""
        tail: list[int] = []
        at = node - 1
        while at >= 0:
            tail.append(int(self.node_tokens[row, at]))
            at = int(self.parents[row, at])
        prefix = self.tokens[row, : int(self.lengths[row])]
        return torch.cat([prefix, prefix.new_tensor(tail[::-1])])


class Sampler(Protocol):
    """The logits processors of a run, the same for target and draft."""

    greedy: bool
    uses_history: bool

    def __call__(self, logits: Tensor, history: History | None = None) -> Distribution:
        """logits [B, M, V] -> distributions; `history` is required when `uses_history`.

        The logits are those of the history's last M nodes (all of them, when a target verifies).
        """
        ...

    def log_probs(self, logits: Tensor, history: History | None = None) -> Tensor:
        """logits [B, M, V] -> log-probabilities [B, M, V] after the processors, to rank tokens by
        (-inf for impossible ones); a greedy run's are those of temperature 1.
        """
        ...
