"""Self-speculation: the target's own layers, with some left out, draft for it."""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.registry.contracts.target import Forward
from draftmesh.stages.draft.exitadapter import Exit
from draftmesh.stages.draft.picker import ChainPicker
from draftmesh.stages.draft.shipped import find_shipped, shipped_head
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.draft.tree.picker import TreePicker
from draftmesh.stages.draft.tree.shape import TreeShape


@register("draft", "self")
class SelfDraft:
    """Early exit (LayerSkip, Elhoushi et al. 2024) and layer skipping (Draft & Verify, Zhang et al.
    2023; SWIFT, Xia et al. 2024) on one cache.

    The draft runs the target without the left-out layers, on the target's own key/values: what it
    writes for the layers before the first left-out one is exactly what the target would write, so
    the verify pass resumes there from the same hidden states; later layers are overwritten by it.
    A static tree is handed back the same way, its nodes run level by level in their final order. Of
    a dynamic tree only the beams are run, not all in the end kept, so the verify pass runs anew.
    A trained adapter may stand in for the layers after the exit (as Kangaroo's, Liu et al. 2024).
    """

    @dataclass(frozen=True)
    class Config(TreeOptions):
        """exit_layer: run only the first N layers, then the final norm and LM head. skip_layers:
        leave out these layers instead (indices from 0). path: folder of a trained adapter after the
        exit; without any of these, the one that comes with DraftMesh for the model, if any."""

        name: str = "self"
        k: int = 3
        exit_layer: int | None = None
        skip_layers: list[int] = field(default_factory=list)
        path: str | None = None

    capture: tuple[int, ...] = ()

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.config, self.context, self.target = config, context, context.target
        self.adapter: nn.Module | None = None
        trained = find_exit(config, context)
        if trained is not None:
            config = replace(config, exit_layer=trained.adapter.shape.exit_layer)
            self.adapter = trained.connect(self.target)
        left_out = left_out_layers(config, self.target.num_layers)
        self.layers = [i for i in range(self.target.num_layers) if i not in left_out]
        self.first_left_out = min(left_out)
        later = [i for i in self.layers if i > self.first_left_out]
        self.handover = later[:1]
        self.full = TreeShape.of(config)
        # The draft's own nodes share the target's cache, so there must be room for them.
        self.depth, self.nodes = self.full.depth, max(self.full.nodes, self.full.work)
        self.resize(self.depth)

    def resize(self, depth: int) -> None:
        """Run at most `depth` levels; a dynamic tree has fewer nodes then, too."""
        self.shape = self.full.cut(depth)
        self.whole = self.shape.kind != "dynamic"
        self.target_forwards = self.shape.depth + self.whole

    def start(self, rows: Rows) -> None:
        """Draft on the batch's own cache."""
        self.cache = rows.cache
        self.chain = ChainPicker(self.context, rows)
        self.tree = TreePicker(self.context, rows, self.config, whole=self.whole)
        self.picker: ChainPicker | TreePicker = (
            self.chain if self.shape.kind == "chain" else self.tree
        )
        self.root = torch.zeros(len(rows.requests), dtype=torch.long, device=self.target.device)

    def observe(self, step: Step) -> None:
        """The cache already holds the step; only the new root matters."""
        self.root = step.next
        self.picker.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """One forward of the remaining layers per level; with other ranks, as many as they run."""
        alone = self.context.ranks.dp == 1
        depth = min(int(budget.max()), self.shape.depth) if alone else self.shape.depth
        if depth == 0:
            return Proposal.empty(len(self.root), self.root.device)
        hidden: list[Tensor] = []
        draft = self._draft_chain if self.shape.kind == "chain" else self._draft_tree
        proposal = draft(budget, depth, hidden)
        # A rank that prefills in the same round runs all layers, so with others we resume nowhere.
        if self.first_left_out == 0 or not self.whole or not alone:
            return proposal
        return replace(proposal, hidden=torch.cat(hidden, dim=1), resume_layer=self.first_left_out)

    def _draft_chain(self, budget: Tensor, depth: int, hidden: list[Tensor]) -> Proposal:
        self.chain.begin()
        token = self.root
        for step in range(depth + 1):
            forward = self._run(token[:, None], hidden, offset=step)
            if step < depth:
                logits = self._logits(forward)
                token = self.chain.pick(logits[:, 0], self.cache.lengths + step + 1)
        return self.chain.proposal(budget)

    def _draft_tree(self, budget: Tensor, depth: int, hidden: list[Tensor]) -> Proposal:
        self.tree.begin(self.cache.lengths + 1, budget, self.shape.cut(depth))
        forward = self._run(self.root[:, None], hidden)
        frontier = self.tree.grow(self._logits(forward))
        while frontier is not None:
            forward = self._run(
                frontier.tokens,
                hidden,
                parents=F.pad(frontier.parents + 1, (1, 0), value=-1),
                valid=frontier.valid,
                offset=frontier.offset + 1,
            )
            if len(frontier.expand) == 0:
                break
            frontier = self.tree.grow(self._logits(forward, frontier.expand))
        return self.tree.proposal()

    def _run(self, tokens: Tensor, hidden: list[Tensor], **options: Any) -> Forward:
        """The remaining layers over tokens [B, T]; adds the states where the target resumes."""
        forward = self.target.forward(
            tokens, self.cache, layers=self.layers, capture=self.handover, **options
        )
        hidden.append(forward.features[self.handover[0]] if self.handover else forward.hidden)
        return forward

    def _logits(self, forward: Forward, nodes: Tensor | None = None) -> Tensor:
        """Logits [B, M, V] at some nodes [M] of a forward, or at all."""
        if forward.logits is not None:
            return forward.logits if nodes is None else forward.logits[:, nodes]
        hidden = forward.hidden if nodes is None else forward.hidden[:, nodes]
        if self.adapter is not None:
            logits: Tensor = self.adapter(hidden)
            return logits
        return self.target.lm_head(self.target.norm(hidden))

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.root = self.root[keep]
        self.picker.drop(keep)

    def idle(self) -> None:
        """The same forwards without a valid token."""
        token = torch.zeros(1, 1, dtype=torch.long, device=self.target.device)
        cache = self.target.new_cache(1, self.target_forwards)
        for step in range(self.target_forwards):
            forward = self.target.forward(
                token, cache, valid=torch.zeros_like(token).bool(), offset=step, layers=self.layers
            )
            if step < self.shape.depth:
                self._logits(forward)


def find_exit(config: SelfDraft.Config, context: DraftContext) -> Exit | None:
    """The trained adapter that is asked for. Raises UserError for options that exclude it."""
    model = context.checkpoint.name
    if config.path is None:
        plain = config.exit_layer is not None or config.skip_layers
        folder = None if plain else find_shipped("self", model)
    elif config.skip_layers:
        raise UserError("draft.path and draft.skip_layers exclude each other: give one")
    else:
        folder = shipped_head("self", model, config.path)
    if folder is None:
        return None
    trained = Exit.load(folder, context.target)
    layer = trained.adapter.shape.exit_layer
    if config.exit_layer not in (None, layer):
        raise UserError(
            f"draft.exit_layer={config.exit_layer}: the adapter in draft.path reads layer {layer}; "
            f"set draft.exit_layer={layer} or null"
        )
    return trained


def left_out_layers(config: SelfDraft.Config, layers: int) -> set[int]:
    """The layers that drafting leaves out; a default exit after a third of them."""
    if config.skip_layers:
        if config.exit_layer is not None:
            raise UserError("draft.exit_layer and draft.skip_layers exclude each other: give one")
        wrong = [i for i in config.skip_layers if not 0 <= i < layers]
        if wrong or len(set(config.skip_layers)) == layers:
            raise UserError(
                f"draft.skip_layers={config.skip_layers}: needs indices from 0 to {layers - 1}, "
                "and must leave at least one layer"
            )
        return set(config.skip_layers)
    exit_layer = max(1, layers // 3) if config.exit_layer is None else config.exit_layer
    if not 1 <= exit_layer < layers:
        raise UserError(f"draft.exit_layer={exit_layer}: needs a number from 1 to {layers - 1}")
    return set(range(exit_layer, layers))
