"""The way down a draft tree."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.verifier import Outcome


class Walk:
    """Where each of B rows stands in its tree (-1 is the root), and the path it took."""

    def __init__(self, proposal: Proposal) -> None:
        self.proposal = proposal
        rows = proposal.tokens.shape[0]
        self.at = proposal.tokens.new_full((rows,), -1)
        self.accepted = proposal.tokens.new_zeros(rows)
        self.path = torch.full_like(proposal.tokens, -1)
        self.bonus = torch.zeros_like(self.at)

    def rows(self) -> Tensor:
        """All rows [B]."""
        return torch.arange(len(self.at), device=self.at.device)

    def children(self, rows: Tensor) -> Tensor:
        """Which nodes are valid children of where the rows [R] stand -> bool [R, N]."""
        below = self.proposal.parents[rows] == self.at[rows, None]
        return below & self.proposal.valid[rows]

    def descend(self, rows: Tensor, nodes: Tensor) -> None:
        """Accept one child per row: rows [R], nodes [R]."""
        self.path[rows, self.accepted[rows]] = nodes
        self.accepted[rows] += 1
        self.at[rows] = nodes

    def finish(
        self, rows: Tensor, probs: Tensor, chance: Chance, positions: Tensor, stream: int
    ) -> None:
        """Draw the bonus token of rows [R] from probs [R, V]; positions [B] as in `verify`."""
        if len(rows):
            at = positions[rows] + self.accepted[rows]
            self.bonus[rows] = chance.sample(probs, rows, at, stream)

    def outcome(self) -> Outcome:
        """What has been accepted, and the bonus token."""
        return Outcome(self.path, self.accepted, self.bonus)


def follow(proposal: Proposal, choices: Tensor) -> Outcome:
    """Descend wherever a child is the target's choice: choices [B, N + 1] at the root and nodes.

    Plain lists, since greedy verification has too little work for tensors. Nodes come after their
    parents, so one pass over them walks from the root to the end of the path.
    """
    paths: list[list[int]] = []
    bonus: list[int] = []
    columns = (proposal.tokens, proposal.parents, proposal.valid, choices)
    for tokens, parents, valid, chosen in zip(*(c.tolist() for c in columns), strict=True):
        at, path = -1, []
        for node, token in enumerate(tokens):
            if parents[node] == at and valid[node] and token == chosen[at + 1]:
                at = node
                path.append(node)
        paths.append(path)
        bonus.append(chosen[at + 1])
    return Outcome(*padded_paths(proposal, paths), proposal.tokens.new_tensor(bonus))


def padded_paths(proposal: Proposal, paths: list[list[int]]) -> tuple[Tensor, Tensor]:
    """The path [B, N] and accepted [B] of an Outcome."""
    size = proposal.size
    path = [nodes + [-1] * (size - len(nodes)) for nodes in paths]
    tensor = proposal.tokens.new_tensor
    return tensor(path).view(len(paths), size), tensor([len(nodes) for nodes in paths])
