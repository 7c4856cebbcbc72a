"""How a draft grows its trees, with the target's own processors."""

from torch import Tensor

from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.prefixes import Prefixes
from draftmesh.stages.draft.tree.dynamic import DynamicGrowth
from draftmesh.stages.draft.tree.frontier import Frontier, RunNodes
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.draft.tree.shape import TreeShape
from draftmesh.stages.draft.tree.start import Start
from draftmesh.stages.draft.tree.static import StaticGrowth


class TreePicker:
    """Collects a tree, level by level.

        picker.begin(positions, budget, shape)
        frontier = picker.grow(logits after the root [B, 1, V])
        while frontier is not None:
            frontier = picker.grow(logits of frontier.expand [B, M, V])
        proposal = picker.proposal()

    A draft that has logits for a whole level at once hands them on as [B, 1, V]. With `whole` the
    draft runs every node of a static tree, in the proposal's order, and after the last level's it
    calls `proposal` (its frontier expands nothing). In a tensor-parallel group the first rank's
    picks count.
    """

    def __init__(
        self, context: DraftContext, rows: Rows, options: TreeOptions, whole: bool = False
    ) -> None:
        self.context, self.rows, self.whole = context, rows, whole
        self.children = choice(context, options)
        self.prefixes = Prefixes(rows, context.sampler.uses_history)
        self.growth: StaticGrowth | DynamicGrowth | None = None
        self.run: RunNodes | None = None

    def begin(self, positions: Tensor, budget: Tensor, shape: TreeShape) -> None:
        """Start new trees of a shape, at most budget [B] deep in each row; positions [B] is the
        absolute position of the first tokens to propose."""
        start = Start(self.context, self.rows.chance, self.prefixes, positions, budget)
        if shape.layout is not None:
            self.growth = StaticGrowth(start, shape.layout, self.children, self.whole)
        else:
            self.growth = DynamicGrowth(start, shape.top_k, shape.depth, shape.nodes)

    def grow(self, logits: Tensor) -> Frontier | None:
        """Choose the next level from the logits of the nodes above it; what to run next, or None
        when the tree is complete."""
        assert self.growth is not None, "begin comes first"
        return self.growth.grow(logits)

    def proposal(self) -> Proposal:
        """The trees grown since `begin`."""
        assert self.growth is not None, "begin comes first"
        self.run, proposal = self.growth.run, self.growth.proposal()
        self.growth = None
        return proposal

    def follow(self, step: Step) -> tuple[Tensor, Tensor] | None:
        """Which of the nodes that the draft ran for the last proposal have been accepted: path
        [B, D] and counts [B] (see RunNodes.follow); None if there was no proposal."""
        run, self.run = self.run, None
        return None if run is None else run.follow(step.tokens, step.lengths)

    def observe(self, step: Step) -> None:
        """Remember the committed tokens (for processors that look back)."""
        self.prefixes.observe(step)

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.prefixes.drop(keep)
        self.run = None if self.run is None else self.run.select(keep)


def choice(context: DraftContext, options: TreeOptions) -> str:
    """How children are chosen in this run: top, distinct or independent (see TreeOptions)."""
    if context.sampler.greedy or options.shape == "dynamic":
        return "top"
    if options.children == "auto":
        return "top" if context.coupled else "distinct"
    return options.children
