"""What training an exit adapter minimises and measures."""

from torch import Tensor

from draftmesh.stages.draft.exitadapter import ExitAdapter
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.distil import DistilLoss


class ExitLoss(DistilLoss):
    """Distillation of an adapter that reads one cached hidden state per token."""

    def __init__(
        self, adapter: ExitAdapter, column: int, rows: Tensor, vocabulary: Tensor, regress: float
    ) -> None:
        """column: where the exit layer's states lie in a batch's features; the rest as in
        DistilLoss."""
        super().__init__(rows, vocabulary, regress)
        self.adapter, self.column = adapter, column

    def outputs(self, batch: Batch, where: Tensor) -> Tensor:
        """Only the wanted places are computed."""
        hidden = batch.features[:, :, self.column][where].to(self.adapter.norm.weight.dtype)
        output: Tensor = self.adapter(hidden)
        return output
