"""Self-speculation: the target's own layers, with some left out, draft for it."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.picker import ChainPicker


@register("draft", "self")
class SelfDraft:
    """Early exit (LayerSkip, Elhoushi et al. 2024) and layer skipping (Draft & Verify, Zhang et al.
    2023; SWIFT, Xia et al. 2024) on one cache.

    The draft runs the target without the left-out layers, on the target's own key/values: what it
    writes for the layers before the first left-out one is exactly what the target would write, so
    the verify pass resumes there from the same hidden states; later layers are overwritten by it.
    """

    @dataclass(frozen=True)
    class Config:
        """k: tokens to propose. exit_layer: run only the first N layers, then the final norm and LM
        head. skip_layers: leave out these layers instead (indices from 0)."""

        name: str = "self"
        k: int = 3
        exit_layer: int | None = None
        skip_layers: list[int] = field(default_factory=list)

    capture: tuple[int, ...] = ()

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.context, self.target = context, context.target
        left_out = left_out_layers(config, self.target.num_layers)
        self.layers = [i for i in range(self.target.num_layers) if i not in left_out]
        self.resume_layer = min(left_out)
        later = [i for i in self.layers if i > self.resume_layer]
        self.handover = later[:1]
        self.depth = self.nodes = config.k
        self.target_forwards = config.k + 1

    def start(self, rows: Rows) -> None:
        """Draft on the batch's own cache."""
        self.cache = rows.cache
        self.picker = ChainPicker(self.context, rows)
        self.root = torch.zeros(len(rows.requests), dtype=torch.long, device=self.target.device)

    def observe(self, step: Step) -> None:
        """The cache already holds the step; only the new root matters."""
        self.root = step.next
        self.picker.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """One forward of the remaining layers per token, one more for the last hidden state."""
        alone = self.context.ranks.world == 1
        depth = int(budget.max()) if alone else self.depth
        if depth == 0:
            return Proposal.empty(len(self.root), self.root.device)
        self.picker.begin()
        token, hidden = self.root, []
        for step in range(depth + 1):
            forward = self.target.forward(
                token[:, None],
                self.cache,
                offset=step,
                layers=self.layers,
                capture=self.handover,
            )
            at_exit = forward.features[self.handover[0]] if self.handover else forward.hidden
            hidden.append(at_exit)
            if step < depth:
                logits = forward.logits
                if logits is None:
                    logits = self.target.lm_head(self.target.norm(forward.hidden))
                token = self.picker.pick(logits[:, 0], self.cache.lengths + step + 1)
        proposal = self.picker.proposal(budget)
        if self.resume_layer == 0:
            return proposal
        return Proposal(
            proposal.tokens,
            proposal.parents,
            proposal.valid,
            proposal.q,
            proposal.q_index,
            hidden=torch.cat(hidden, dim=1),
            resume_layer=self.resume_layer,
        )

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.root = self.root[keep]
        self.picker.drop(keep)

    def idle(self) -> None:
        """The same forwards without a valid token."""
        token = torch.zeros(1, 1, dtype=torch.long, device=self.target.device)
        cache = self.target.new_cache(1, self.depth + 1)
        for step in range(self.depth + 1):
            forward = self.target.forward(
                token, cache, valid=torch.zeros_like(token).bool(), offset=step, layers=self.layers
            )
            if forward.logits is None and step < self.depth:
                self.target.lm_head(self.target.norm(forward.hidden))


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
