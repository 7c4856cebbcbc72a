"""Which nodes a static tree has, before any token is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod

from draftmesh.registry import UserError

Path = tuple[int, ...]
"""The way down to a node: the rank of the child taken at each depth."""

MOST = 1024
"""Leaves of a tree given by widths; no verification pays for more."""


@dataclass(frozen=True)
class Layout:
    """Nodes in level order, siblings by rank: parents[n] (-1 is the root) and ranks[n] of node n,
    levels[d] the nodes at depth d + 1."""

    parents: tuple[int, ...]
    ranks: tuple[int, ...]
    levels: tuple[range, ...]

    @staticmethod
    def of(paths: Sequence[Path]) -> "Layout":
        """From the path of every node; each node's parent has to be among them."""
        ordered = sorted(paths, key=lambda path: (len(path), path))
        number = {path: n for n, path in enumerate(ordered)} | {(): -1}
        depths = [len(path) for path in ordered]
        starts = [depths.index(d) for d in range(1, depths[-1] + 1)]
        ends = [*starts[1:], len(ordered)]
        return Layout(
            tuple(number[path[:-1]] for path in ordered),
            tuple(path[-1] for path in ordered),
            tuple(map(range, starts, ends)),
        )

    def inner(self, level: int) -> list[int]:
        """The nodes of levels[level] that have children."""
        having = set(self.parents)
        return [node for node in self.levels[level] if node in having]

    def top(self, depth: int) -> "Layout":
        """The same tree, cut off below a depth."""
        size = self.levels[depth - 1].stop
        return Layout(self.parents[:size], self.ranks[:size], self.levels[:depth])


def from_widths(widths: Sequence[int]) -> list[Path]:
    """Every node at depth d has widths[d] children."""
    if min(widths) < 1:
        raise UserError(f"draft.widths={list(widths)}: every depth needs at least one child")
    if prod(widths) > MOST:
        raise UserError(f"draft.widths={list(widths)}: more than {MOST} nodes")
    paths: list[Path] = []
    above: list[Path] = [()]
    for width in widths:
        above = [(*path, rank) for path in above for rank in range(width)]
        paths += above
    return paths


def from_paths(listed: Sequence[Sequence[int]]) -> list[Path]:
    """The paths as listed, for example Medusa's choices."""
    paths = [tuple(path) for path in listed]
    known = {(), *paths}
    for path in paths:
        if not path or min(path) < 0:
            raise UserError(f"draft.paths: {list(path)} needs ranks of children, from 0")
        if path[:-1] not in known:
            raise UserError(
                f"draft.paths: {list(path)} hangs below {list(path[:-1])}, which is not listed"
            )
    if len(known) <= len(paths):
        raise UserError("draft.paths: a path is listed twice")
    return paths


def likeliest(nodes: int, depth: int, top_k: int) -> list[Path]:
    """The nodes most likely to be on the accepted path, if a child of rank r is accepted with
    probability 0.5 (r + 1)^-1.5 wherever it stands, which is about how drafts fare."""
    heap: list[tuple[float, Path]] = [(-_accepted(0), (0,))]
    paths: list[Path] = []
    while heap and len(paths) < nodes:
        cost, path = heappop(heap)
        paths.append(path)
        rank = path[-1]
        if len(path) < depth:
            heappush(heap, (cost * _accepted(0), (*path, 0)))
        if rank + 1 < top_k:
            sibling = cost / _accepted(rank) * _accepted(rank + 1)
            heappush(heap, (sibling, (*path[:-1], rank + 1)))
    return paths


def _accepted(rank: int) -> float:
    return 0.5 * float(rank + 1) ** -1.5
