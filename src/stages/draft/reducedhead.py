"""The target's LM head for a part of the vocabulary, as a module."""

from torch import Tensor, nn

from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.partialhead import PartialHead
from draftmesh.stages.draft.vocabulary import whole_vocabulary


class ReducedHead(nn.Module):
    """The target's logits for some ids [Vd]; -inf for the others, which are never drafted."""

    def __init__(self, target: Target, ids: Tensor) -> None:
        super().__init__()
        self.part, self.ids, self.vocab = PartialHead(target, ids), ids, target.vocab_size

    def forward(self, hidden: Tensor) -> Tensor:
        """Final-normed hidden [..., H] -> logits [..., V]."""
        return whole_vocabulary(self.part(hidden), self.ids, self.vocab)
