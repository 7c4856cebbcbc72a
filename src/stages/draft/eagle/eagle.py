"""`draft=eagle`: a trained one-layer head drafts from the target's own hidden states."""

from dataclasses import dataclass

from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.eagle.loader import load_head
from draftmesh.stages.draft.eagle.runner import HeadRunner
from draftmesh.stages.draft.eagle.shipped import shipped_head
from draftmesh.stages.draft.picker import ChainPicker


@register("draft", "eagle")
class EagleDraft:
    """EAGLE versions 1 and 3 (Li et al. 2024, arXiv 2401.15077; 2025, arXiv 2503.01840), chains."""

    @dataclass(frozen=True)
    class Config:
        """path: folder of a head; null takes the one shipped for the model. k: tokens to propose.
        shape: chain."""

        name: str = "eagle"
        path: str | None = None
        k: int = 5
        shape: str = "chain"

    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        if config.shape != "chain":
            raise UserError(f"draft.shape={config.shape}: draft=eagle proposes a chain")
        self.context = context
        folder = shipped_head("eagle", context.checkpoint.name, config.path)
        self.head = load_head(folder, context.target)
        self.depth = self.nodes = config.k
        self.capture = self.head.config.capture

    def start(self, rows: Rows) -> None:
        """Empty key/values."""
        capacity = rows.capacity + self.depth
        self.runner = HeadRunner(self.head, self.context.target, len(rows.requests), capacity)
        self.picker = ChainPicker(self.context, rows)

    def observe(self, step: Step) -> None:
        """Write the true key/values of the step."""
        self.runner.observe(step)
        self.picker.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """One head forward per token after the first; none past the head's own positions."""
        lengths = self.runner.cache.lengths
        budget = budget.minimum(self.head.config.max_position - lengths).clamp(min=0)
        depth = int(budget.max())
        if depth == 0:
            return Proposal.empty(len(budget), budget.device)
        self.picker.begin()
        output = self.runner.output
        for step in range(1, depth + 1):
            # The root, not in the head's cache as a position of its own, is at `lengths`.
            token = self.picker.pick(self.runner.logits(output), lengths + step)
            if step < depth:
                output = self.runner.follow(output, token, step)
        return self.picker.proposal(budget)

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.runner.select(keep)
        self.picker.drop(keep)

    def idle(self) -> None:
        """No collectives."""
