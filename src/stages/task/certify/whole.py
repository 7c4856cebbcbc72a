"""A draft that always proposes as far as it can, and shows what its proposals look like."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Draft, Proposal, Rows, Step
from draftmesh.stages.task.certify.shape import Shape


class WholeDraft:
    """Passes everything on to a draft, except for the budget of a sequence that is about to end.

    So two tokens are enough to test proposals of full depth, as they occur in the middle of a
    completion. `shape` is that of the largest proposal so far.
    """

    def __init__(self, draft: Draft, depth: int) -> None:
        self.draft = draft
        self.capture, self.nodes = draft.capture, draft.nodes
        self.depth, self.target_forwards = draft.depth, draft.target_forwards
        self._budget = min(draft.depth, depth)
        self.shape: Shape | None = None

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
            largest = int(proposal.valid.sum(1).argmax())
            shape = Shape.of(proposal, largest)
            if self.shape is None or len(shape.parents) > len(self.shape.parents):
                self.shape = shape
        return proposal

    def drop(self, keep: Tensor) -> None:
        """See Draft."""
        self.draft.drop(keep)

    def idle(self) -> None:
        """See Draft."""
        self.draft.idle()
