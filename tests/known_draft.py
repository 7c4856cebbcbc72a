"""A draft that is right exactly as often as a test says."""

from collections.abc import Sequence

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext

CHAIN = (-1, 0, 1, 2)
TREE = (-1, -1, 0, 1, 1, 3)
"""Two children of the root, one below the first, two below the second, and one deeper."""


def depths(parents: Sequence[int]) -> list[int]:
    """The depth of each node, from 1."""
    found: list[int] = []
    for parent in parents:
        found.append(1 + (found[parent] if parent >= 0 else 0))
    return found


def right_nodes(parents: Sequence[int]) -> list[int]:
    """The longest path, taking the last of the deepest nodes."""
    depth = depths(parents)
    node = max(range(len(parents)), key=lambda n: (depth[n], n))
    found = []
    while node >= 0:
        found.append(node)
        node = parents[node]
    return found[::-1]


class KnownDraft:
    """Proposes trees of one shape along which known continuations run, and wrong tokens elsewhere.

    known[i] is what the request with index i would become. In its n-th proposal the first
    hits[n % len(hits)] nodes of the longest path are right, and nothing else is.
    """

    capture: tuple[int, ...] = ()
    target_forwards = 0

    def __init__(
        self,
        context: DraftContext,
        known: Sequence[Sequence[int]],
        hits: Sequence[int],
        parents: Sequence[int] = CHAIN,
    ) -> None:
        self.known, self.hits, self.parents = known, hits, parents
        self.vocab = len(context.checkpoint.tokenizer)
        self.depth, self.nodes = max(depths(parents)), len(parents)
        self.budgets: list[list[int]] = []

    def start(self, rows: Rows) -> None:
        """Nothing emitted yet."""
        self.rows = [[request.index, 0, 0] for request in rows.requests]

    def observe(self, step: Step) -> None:
        """Count what was emitted."""
        for row, count in zip(self.rows, step.lengths.tolist(), strict=True):
            row[1] += count if row[1] else 1

    def propose(self, budget: Tensor) -> Proposal:
        """As deep as the budget allows."""
        self.budgets.append(budget.tolist())
        tokens = torch.tensor([self._tokens(row) for row in self.rows])
        depth = torch.tensor(depths(self.parents))
        return Proposal(
            tokens,
            torch.tensor([self.parents] * len(self.rows)),
            depth <= budget[:, None],
        )

    def _tokens(self, row: list[int]) -> list[int]:
        index, emitted, proposals = row
        row[2] += 1
        following = [*self.known[index][emitted:], *[0] * self.depth]
        right = right_nodes(self.parents)[: self.hits[proposals % len(self.hits)]]
        depth = depths(self.parents)
        tokens = []
        for node in range(self.nodes):
            truth = following[depth[node] - 1]
            tokens.append(truth if node in right else (truth + 1 + node) % self.vocab)
        return tokens

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.rows = [self.rows[row] for row in keep.tolist()]

    def idle(self) -> None:
        """No collectives."""
