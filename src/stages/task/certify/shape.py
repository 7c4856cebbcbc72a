"""The shape of a draft's proposals."""

from collections import Counter
from dataclasses import dataclass

from draftmesh.registry.contracts.draft import Proposal

DEPTHS = (3, 2)
"""Depth of reduced chains and of reduced trees."""
SIBLINGS = 2


@dataclass(frozen=True)
class Shape:
    """Which node hangs below which (-1 is the root), and how each came by its token.

    drawn: from a distribution that is handed on (else without chance, or from one that is not).
    replacement, fixed_shape: as in Proposal.
    """

    parents: tuple[int, ...] = ()
    drawn: tuple[bool, ...] = ()
    replacement: bool = True
    fixed_shape: bool = True

    @staticmethod
    def of(proposal: Proposal, row: int) -> "Shape":
        """That of a row's valid nodes."""
        valid = proposal.valid[row].tolist()
        place = {-1: -1} | {node: i for i, node in enumerate(_true(valid))}
        parents = proposal.parents[row].tolist()
        index = [-1] * len(valid)
        if proposal.q is not None and proposal.q_index is not None:
            index = proposal.q_index[row].tolist()
        return Shape(
            tuple(place[parents[node]] for node in _true(valid)),
            tuple(index[node] >= 0 for node in _true(valid)),
            proposal.replacement,
            proposal.fixed_shape,
        )

    @property
    def kind(self) -> tuple[bool, frozenset[bool], bool, bool]:
        """What a verifier may treat differently."""
        return self.branching, frozenset(self.drawn), self.replacement, self.fixed_shape

    @property
    def depths(self) -> list[int]:
        """Depth of each node; 1 below the root."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 + (depths[parent] if parent >= 0 else 0))
        return depths

    @property
    def branching(self) -> bool:
        """Whether some node has two children."""
        return len(set(self.parents)) < len(self.parents)

    def reduced(self, most: int) -> "Shape":
        """The same kind of shape with at most `most` nodes, the upper ones first."""
        limit, depths = DEPTHS[self.branching], self.depths
        place, children = {-1: -1}, Counter[int]()
        parents: list[int] = []
        drawn: list[bool] = []
        for node in sorted(range(len(depths)), key=depths.__getitem__):
            parent = self.parents[node]
            if parent not in place or depths[node] > limit or children[parent] == SIBLINGS:
                continue
            if len(parents) == most:
                break
            children[parent] += 1
            place[node] = len(parents)
            parents.append(place[parent])
            drawn.append(self.drawn[node])
        return Shape(tuple(parents), tuple(drawn), self.replacement, self.fixed_shape)

    def __str__(self) -> str:
        """In words."""
        if not self.parents:
            return "no draft"
        kinds = {True: "drawn", False: "given"}
        how = " and ".join(kinds[kind] for kind in sorted(set(self.drawn), reverse=True))
        if not self.branching:
            return f"a chain of {len(self.parents)} {how} tokens"
        rule = " with replacement" if self.replacement else " without replacement"
        return f"a tree of {len(self.parents)} {how} nodes{rule if any(self.drawn) else ''}"


def _true(flags: list[bool]) -> list[int]:
    return [i for i, flag in enumerate(flags) if flag]
