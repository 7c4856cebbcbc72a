"""A draft that always proposes as far as it can, and shows what its proposals look like."""

from collections.abc import Hashable

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Draft, Proposal, Rows, Step
from draftmesh.stages.task.certify.shape import Shape


class WholeDraft:
    """Passes everything on to a draft, except for the budget of a sequence that is about to end.

    So two tokens are enough to test a proposal of full depth, as they occur in the middle of a
    completion; what it leaves of the two comes by plain decoding. `shapes` are the largest ones of
    each kind so far (see Shape.kind); `firsts` {prompt: the distribution [V] that the first node of
    the first proposal came from, one-hot if it was given}, of the last batch.
    """

    def __init__(self, draft: Draft, depth: int, vocabulary: int) -> None:
        self.draft, self.vocabulary = draft, vocabulary
        self.capture, self.nodes = draft.capture, draft.nodes
        self.depth, self.target_forwards = draft.depth, draft.target_forwards
        self._budget = min(draft.depth, depth)
        self._prompts: list[tuple[int, ...]] = []
        self.shapes: dict[Hashable, Shape] = {}
        self.firsts: dict[tuple[int, ...], Tensor] = {}

    def start(self, rows: Rows) -> None:
        """See Draft."""
        self._prompts = [request.token_ids for request in rows.requests]
        self.firsts = {}
        self.draft.start(rows)

    def observe(self, step: Step) -> None:
        """See Draft."""
        self.draft.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """A proposal of full depth for the rows that want one."""
        proposal = self.draft.propose(torch.where(budget > 0, self._budget, 0))
        if proposal.size:
            keep_largest(self.shapes, Shape.of(proposal, int(proposal.valid.sum(1).argmax())))
            for row, prompt in enumerate(self._prompts):
                if bool(proposal.valid[row, 0]):
                    self.firsts[prompt] = _first(proposal, row, self.vocabulary)
        self._prompts = []
        return proposal

    def drop(self, keep: Tensor) -> None:
        """See Draft."""
        self._prompts = []
        self.draft.drop(keep)

    def idle(self) -> None:
        """See Draft."""
        self.draft.idle()


def keep_largest(shapes: dict[Hashable, Shape], shape: Shape) -> None:
    """Put a shape among the largest ones of each kind; an empty one is none."""
    before = shapes.get(shape.kind)
    if shape.parents and (before is None or len(before.parents) < len(shape.parents)):
        shapes[shape.kind] = shape


def _first(proposal: Proposal, row: int, vocabulary: int) -> Tensor:
    index = -1 if proposal.q_index is None else int(proposal.q_index[row, 0])
    if proposal.q is not None and index >= 0:
        return proposal.q[row, index].double().cpu()
    given = torch.zeros(vocabulary, dtype=torch.float64)
    given[proposal.tokens[row, 0]] = 1
    return given
