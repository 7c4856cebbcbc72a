"""The nodes that a draft runs while its tree grows."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Frontier:
    """The nodes to run next.

    tokens [B, F] and valid [B, F]; parents [B, offset + F] is the tree of all nodes run so far,
    these F last (-1 is the root), as `Target.forward(parents=..., offset=...)` takes it when the
    root is committed. expand [M]: which of the F nodes get children, whose logits come next.
    """

    tokens: Tensor
    parents: Tensor
    valid: Tensor
    offset: int
    expand: Tensor


@dataclass(frozen=True)
class RunNodes:
    """All nodes of one tree that the draft has run: tokens, parents and valid, each [B, R]."""

    tokens: Tensor
    parents: Tensor
    valid: Tensor

    def select(self, keep: Tensor) -> "RunNodes":
        """Only the rows in keep [B']."""
        return RunNodes(self.tokens[keep], self.parents[keep], self.valid[keep])

    def follow(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Find the accepted tokens among the nodes.

        tokens [B, T] of which lengths [B] count, the root first (see Step). Returns path [B, D] of
        indices from the top down, padded with -1, and how many there are [B]: a leaf that was
        accepted without having been run ends the path.
        """
        found = [
            _walk(nodes, parents, valid, accepted[1:count])
            for nodes, parents, valid, accepted, count in zip(
                self.tokens.tolist(),
                self.parents.tolist(),
                self.valid.tolist(),
                tokens.tolist(),
                lengths.tolist(),
                strict=True,
            )
        ]
        depth = max(map(len, found), default=0)
        padded = [path + [-1] * (depth - len(path)) for path in found]
        device = self.tokens.device
        counts = torch.tensor([len(path) for path in found], dtype=torch.long, device=device)
        path = torch.tensor(padded, dtype=torch.long, device=device).view(len(found), depth)
        return path, counts


def _walk(
    nodes: list[int], parents: list[int], valid: list[bool], accepted: list[int]
) -> list[int]:
    """The longest path of nodes that spell the accepted tokens; siblings may be equal."""
    ends = {-1: list[int]()}
    best: list[int] = []
    for node, (token, parent) in enumerate(zip(nodes, parents, strict=True)):
        above = ends.get(parent)
        if above is None or not valid[node] or len(above) >= len(accepted):
            continue
        if accepted[len(above)] == token:
            ends[node] = [*above, node]
            best = max(best, ends[node], key=len)
    return best
