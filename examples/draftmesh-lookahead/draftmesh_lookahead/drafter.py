"""draft=lookahead."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh_lookahead.pool import NGramPool, merge


class Lookahead:
    """The verification branch of lookahead decoding, with its pool filled from the sequence itself.

    Every n-gram that followed the last token before is tried at once, as a tree. The choice is
    deterministic, so q is one-hot. Source: Fu et al., "Break the Sequential Dependency of LLM
    Inference Using Lookahead Decoding" (2024), without its Jacobi branch, which invents n-grams.
    """

    @dataclass(frozen=True)
    class Config:
        """k: tokens per n-gram. branches: n-grams tried at once. window: occurrences looked at."""

        name: str = "lookahead"
        k: int = 4
        branches: int = 3
        window: int = 16

        def __post_init__(self) -> None:
            """Raises UserError for a count below 1."""
            for option in ("k", "branches", "window"):
                if getattr(self, option) < 1:
                    raise UserError(f"draft.{option}={getattr(self, option)}: must be at least 1")

    capture: tuple[int, ...] = ()
    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.config = config
        self.depth = config.k
        self.nodes = config.k * config.branches
        self.device = context.target.device
        self.pools: list[NGramPool] = []

    def start(self, rows: Rows) -> None:
        """One empty pool per sequence."""
        self.pools = [NGramPool() for _ in rows.requests]

    def observe(self, step: Step) -> None:
        """Add what the target kept, and the token it chose next.

        The first token of a step after the prompt is the last step's `next`, which is in the pool.
        """
        kept = zip(step.tokens.tolist(), step.lengths.tolist(), step.next.tolist(), strict=True)
        for pool, (tokens, count, following) in zip(self.pools, kept, strict=True):
            known = 1 if pool.tokens else 0
            pool.extend([*tokens[known:count], following])

    def propose(self, budget: Tensor) -> Proposal:
        """A ragged tree per row, at most budget [B] deep."""
        config = self.config
        trees = [
            merge(pool.continuations(min(config.k, depth), config.branches, config.window))
            for pool, depth in zip(self.pools, budget.tolist(), strict=True)
        ]
        size = max((len(tokens) for tokens, _ in trees), default=0)
        return Proposal(
            self._padded([tokens for tokens, _ in trees], size, 0),
            self._padded([parents for _, parents in trees], size, -1),
            self._padded([[1] * len(tokens) for tokens, _ in trees], size, 0).bool(),
        )

    def drop(self, keep: Tensor) -> None:
        """Forget the rows that are not kept."""
        self.pools = [self.pools[row] for row in keep.tolist()]

    def idle(self) -> None:
        """Drafting enters no collectives."""

    def _padded(self, lines: list[list[int]], size: int, fill: int) -> Tensor:
        filled = [line + [fill] * (size - len(line)) for line in lines]
        return torch.tensor(filled, dtype=torch.long, device=self.device).view(len(lines), size)
