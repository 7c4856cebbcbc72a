"""`draft=eagle`: a trained one-layer head drafts from the target's own hidden states."""

import copy
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from draftmesh.registry import register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.loader import load_head
from draftmesh.stages.draft.eagle.runner import HeadRunner
from draftmesh.stages.draft.eagle.suspects import suspects
from draftmesh.stages.draft.picker import ChainPicker
from draftmesh.stages.draft.selfcheck import self_check
from draftmesh.stages.draft.shipped import shipped_head
from draftmesh.stages.draft.tree.options import StepwiseOptions
from draftmesh.stages.draft.tree.picker import TreePicker
from draftmesh.stages.draft.tree.shape import TreeShape
from draftmesh.stages.model.packed import pack


@register("draft", "eagle")
class EagleDraft:
    """EAGLE (Li et al.): versions 1 (arXiv 2401.15077) and 3 (arXiv 2503.01840) of the head, as
    chains, static trees, and the dynamic trees of version 2 (arXiv 2406.16858)."""

    @dataclass(frozen=True)
    class Config(StepwiseOptions):
        """path: folder or Hub id of a head; null takes the one that comes with DraftMesh for the
        model."""

        name: str = "eagle"
        path: str | None = None

    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.config, self.context = config, context
        self.full = self.shape = TreeShape.of(config)
        self.depth, self.nodes = self.full.depth, self.full.nodes
        folder = shipped_head("eagle", context.checkpoint.name, config.path)
        self.use(load_head(folder, context.target))
        readings = suspects(self.head, context.target)
        others = {cause: copy.copy(self).use(head) for cause, head in readings.items()}
        self.agreement = self_check(self, f"draft.path={folder}", others)
        pack(self.head)

    def use(self, head: Head) -> Self:
        """Draft with this head."""
        self.head, self.capture = head, head.config.capture
        return self

    def start(self, rows: Rows) -> None:
        """Empty key/values."""
        capacity = rows.capacity + self.full.work + 1
        self.runner = HeadRunner(self.head, self.context.target, len(rows.requests), capacity)
        self.chain = ChainPicker(self.context, rows, self.config.confidence)
        self.tree = TreePicker(self.context, rows, self.config)
        self.picker: ChainPicker | TreePicker = (
            self.chain if self.shape.kind == "chain" else self.tree
        )

    def resize(self, depth: int) -> None:
        """Propose at most `depth` deep; a dynamic tree has fewer nodes then, too."""
        self.shape = self.full.cut(depth)

    def observe(self, step: Step) -> None:
        """Write the true key/values of the step."""
        self.runner.observe(step)
        self.picker.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """One head forward per level after the first; no draft past the head's own positions."""
        room = self.head.config.max_position - self.runner.cache.lengths
        budget = budget.minimum(room).clamp(min=0, max=self.shape.depth)
        depth = int(budget.max())
        if depth == 0:
            return Proposal.empty(len(budget), budget.device)
        if self.shape.kind == "chain":
            return self._draft_chain(budget, depth)
        return self._draft_tree(budget, depth)

    def _draft_chain(self, budget: Tensor, depth: int) -> Proposal:
        self.chain.begin()
        output = self.runner.output
        for step in range(1, depth + 1):
            # The root has not been through the target: it stands at the cache's length.
            positions = self.runner.cache.lengths + step
            token = self.chain.pick(self.runner.logits(output)[:, 0], positions)
            if step == depth or self.chain.ended:
                break
            output = self.runner.follow(output, token, step)
        return self.chain.proposal(budget)

    def _draft_tree(self, budget: Tensor, depth: int) -> Proposal:
        self.tree.begin(self.runner.cache.lengths + 1, budget, self.shape.cut(depth))
        self.runner.begin()
        frontier = self.tree.grow(self.runner.logits(self.runner.output))
        while frontier is not None:
            frontier = self.tree.grow(self.runner.logits(self.runner.expand(frontier)))
        return self.tree.proposal()

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.runner.select(keep)
        self.picker.drop(keep)

    def idle(self) -> None:
        """No collectives."""

    def facts(self) -> dict[str, Scalar]:
        """How often the head's first choice was the target's when it was loaded."""
        return {"draft_agreement": self.agreement}
