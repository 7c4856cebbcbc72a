"""The shape of a draft's proposals."""

from dataclasses import dataclass, replace

from draftmesh.registry import UserError
from draftmesh.stages.draft.tree.layout import Layout, Path, from_paths, from_widths, likeliest
from draftmesh.stages.draft.tree.options import TreeOptions

NODES = 16
"""Nodes of a tree when nothing says how many."""


@dataclass(frozen=True)
class TreeShape:
    """depth: longest path. nodes: most nodes of a proposal. top_k: most children of a node.
    layout: the nodes of a static tree; None for a chain and a dynamic tree.
    """

    kind: str
    depth: int
    nodes: int
    top_k: int
    layout: Layout | None = None

    @staticmethod
    def of(options: TreeOptions) -> "TreeShape":
        """Raises UserError for widths or paths that `k` or `nodes` have no room for."""
        if options.shape == "chain":
            return TreeShape("chain", options.k, options.k, 1)
        nodes = options.nodes or NODES
        if options.shape == "dynamic":
            depth, beams = min(options.k, nodes), options.top_k
            return TreeShape("dynamic", depth, min(nodes, _candidates(beams, depth)), beams)
        paths = _paths(options, nodes)
        layout = Layout.of(paths)
        widest = max(layout.ranks) + 1
        return TreeShape("static", len(layout.levels), len(paths), widest, layout)

    @property
    def work(self) -> int:
        """Most nodes that a draft itself runs to grow one tree: those that may get children."""
        if self.layout is not None:
            return len(set(self.layout.parents) - {-1})
        if self.kind == "dynamic":
            return self.top_k * (self.depth - 1)
        return self.depth - 1

    def cut(self, depth: int) -> "TreeShape":
        """The shape at most `depth` deep; a dynamic tree keeps its nodes per depth."""
        if depth >= self.depth:
            return self
        if self.layout is not None:
            layout = self.layout.top(depth)
            return replace(self, depth=depth, nodes=len(layout.parents), layout=layout)
        share = max(depth, -(-self.nodes * depth // self.depth))
        nodes = min(share, _candidates(self.top_k, depth)) if self.kind == "dynamic" else depth
        return replace(self, depth=depth, nodes=nodes)


def _candidates(beams: int, depth: int) -> int:
    """Nodes that a dynamic tree chooses from: children of the root, then of every beam."""
    return beams + (depth - 1) * beams * beams


def _paths(options: TreeOptions, nodes: int) -> list[Path]:
    if options.widths:
        name, paths = "widths", from_widths(options.widths)
    elif options.paths:
        name, paths = "paths", from_paths(options.paths)
    else:
        return likeliest(nodes, options.k, options.top_k)
    deepest = max(map(len, paths))
    if deepest > options.k:
        raise UserError(f"draft.k={options.k}: draft.{name} goes {deepest} deep: set draft.k")
    if options.nodes is not None and len(paths) > options.nodes:
        raise UserError(
            f"draft.nodes={options.nodes}: draft.{name} makes {len(paths)} nodes: "
            "raise draft.nodes, or leave it out"
        )
    return paths
