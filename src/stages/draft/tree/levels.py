"""A layout, as it is grown: level by level."""

from dataclasses import dataclass
from functools import lru_cache

from draftmesh.stages.draft.tree.layout import Layout


@dataclass(frozen=True)
class Level:
    """One level of a layout.

    nodes: its nodes; parents: theirs; ranks: their ranks among their siblings. above: which of the
    nodes that get children here each hangs below. inner: which of the nodes will get children
    themselves. run: all nodes down to this level that get children, the inner ones last, and
    run_parents: their parents, counted among them.
    """

    nodes: range
    parents: list[int]
    ranks: list[int]
    above: list[int]
    inner: list[int]
    run: list[int]
    run_parents: list[int]

    @property
    def ran_before(self) -> int:
        """How many of `run` are of earlier levels."""
        return len(self.run) - len(self.inner)


@lru_cache(maxsize=64)
def levels_of(layout: Layout) -> tuple[Level, ...]:
    """From the top level down."""
    levels = []
    above, run = [-1], list[int]()
    for depth, nodes in enumerate(layout.levels):
        parents = [layout.parents[node] for node in nodes]
        inner = layout.inner(depth)
        run = run + inner
        number = {node: i for i, node in enumerate(run)} | {-1: -1}
        levels.append(
            Level(
                nodes,
                parents,
                [layout.ranks[node] for node in nodes],
                [above.index(parent) for parent in parents],
                [node - nodes.start for node in inner],
                run,
                [number[layout.parents[node]] for node in run],
            )
        )
        above = inner
    return tuple(levels)
