"""What distilling a small draft model minimises and measures."""

from torch import Tensor, nn

from draftmesh.registry.contracts.target import Target
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.distil import DistilLoss


class SmallLoss(DistilLoss):
    """Distillation of a decoder that reads whole chats."""

    def __init__(
        self, model: nn.Module, target: Target, rows: Tensor, vocabulary: Tensor, regress: float
    ) -> None:
        """model: a decoder from embeddings to final-normed states; the rest as in DistilLoss."""
        super().__init__(rows, vocabulary, regress)
        self.model, self.target = model, target

    def outputs(self, batch: Batch, where: Tensor) -> Tensor:
        """Padding comes last, so the causal mask is enough."""
        weight = next(self.model.parameters())
        embeddings = self.target.embed(batch.tokens).to(weight.dtype)
        hidden: Tensor = self.model(inputs_embeds=embeddings, use_cache=False).last_hidden_state
        return hidden[where]
