"""`draft=medusa`: heads on the target's last hidden state guess several tokens at once."""

from dataclasses import dataclass, replace

from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.draft.medusa.loader import load_heads
from draftmesh.stages.draft.medusa.runner import MedusaRunner
from draftmesh.stages.draft.picker import ChainPicker
from draftmesh.stages.draft.selfcheck import self_check
from draftmesh.stages.draft.shipped import shipped_head
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.draft.tree.picker import TreePicker
from draftmesh.stages.draft.tree.shape import TreeShape


@register("draft", "medusa")
class MedusaDraft:
    """Medusa (Cai et al. 2024, arXiv 2401.10774), as chains, static trees, and dynamic trees of the
    likeliest products of the heads' probabilities.

    Head h is the same for every node at depth h, whatever was drafted above, so all heads run once
    per proposal, on the hidden state from which the root was chosen.
    """

    @dataclass(frozen=True)
    class Config(TreeOptions):
        """path: folder or Hub id of heads; null takes those that come with DraftMesh for the
        model."""

        name: str = "medusa"
        k: int = 4
        shape: str = "dynamic"
        path: str | None = None

    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.context = context
        folder = shipped_head("medusa", context.checkpoint.name, config.path)
        heads = load_heads(folder, context.target)
        if context.automatic:
            config = replace(config, k=min(config.k, heads.count))
        self.config = config
        self.full = self.shape = TreeShape.of(config)
        self.depth, self.nodes = self.full.depth, self.full.nodes
        if self.depth > heads.count:
            raise UserError(
                f"draft.k={config.k}: {folder} has {heads.count} heads, and a draft is at most as "
                f"deep: set draft.k={heads.count}"
            )
        self.capture: tuple[int, ...] = (context.target.num_layers,)
        self.runner = MedusaRunner(heads, context.target)
        self.agreement = self_check(self, f"draft.path={folder}", {})

    def start(self, rows: Rows) -> None:
        """A new batch."""
        self.runner.start(len(rows.requests))
        self.chain = ChainPicker(self.context, rows)
        self.tree = TreePicker(self.context, rows, self.config)
        self.picker: ChainPicker | TreePicker = (
            self.chain if self.shape.kind == "chain" else self.tree
        )

    def resize(self, depth: int) -> None:
        """Propose at most `depth` deep; a dynamic tree has fewer nodes then, too."""
        self.shape = self.full.cut(depth)

    def observe(self, step: Step) -> None:
        """Keep the last hidden state."""
        self.runner.observe(step)
        self.picker.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """Run as many heads as the proposal is deep, then choose tokens level by level."""
        budget = budget.clamp(min=0, max=self.shape.depth)
        depth = int(budget.max())
        if depth == 0:
            return Proposal.empty(len(budget), budget.device)
        logits = self.runner.logits(depth)
        # The root has not been through the target: it stands at the committed length.
        first = self.runner.lengths + 1
        if self.shape.kind == "chain":
            self.chain.begin()
            for level in range(depth):
                self.chain.pick(logits[:, level], first + level)
            return self.chain.proposal(budget)
        self.tree.begin(first, budget, self.shape.cut(depth))
        for level in range(depth):
            self.tree.grow(logits[:, level : level + 1])
        return self.tree.proposal()

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.runner.select(keep)
        self.picker.drop(keep)

    def idle(self) -> None:
        """No collectives."""

    def facts(self) -> dict[str, Scalar]:
        """How often the first head's choice was the target's when the heads were loaded."""
        return {"draft_agreement": self.agreement}
