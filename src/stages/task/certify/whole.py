"""A draft that always proposes as far as it can, and shows what its proposals look like."""

from collections.abc import Hashable

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Draft, Proposal, Rows, Step
from draftmesh.stages.task.certify.shape import Shape


class WholeDraft:
    """Passes everything on to a draft, except for the budget of a sequence that is about to end.

    So two tokens are enough to test proposals of full depth, as they occur in the middle of a
    completion. `shapes` are the largest proposals so far of each kind (see Shape.kind).
    """

    def __init__(self, draft: Draft, depth: int) -> None:
        self.draft = draft
        self.capture, self.nodes = draft.capture, draft.nodes
        self.depth, self.target_forwards = draft.depth, draft.target_forwards
        self._budget = min(draft.depth, depth)
        self.shapes: dict[Hashable, Shape] = {}

    def start(self, rows: Rows) -> None:
        """See Draft."""
        self.draft.start(rows)

    def observe(self, step: Step) -> None:
        """See Draft."""
        self.draft.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """A proposal of full depth."""
        proposal = self.draft.propose(torch.full_like(budget, self._budget))
        if proposal.size:
            keep_largest(self.shapes, Shape.of(proposal, int(proposal.valid.sum(1).argmax())))
        return proposal

    def drop(self, keep: Tensor) -> None:
        """See Draft."""
        self.draft.drop(keep)

    def idle(self) -> None:
        """See Draft."""
        self.draft.idle()


def keep_largest(shapes: dict[Hashable, Shape], shape: Shape) -> None:
    """Put a shape among the largest ones of each kind; an empty one is none."""
    before = shapes.get(shape.kind)
    if shape.parents and (before is None or len(before.parents) < len(shape.parents)):
        shapes[shape.kind] = shape
