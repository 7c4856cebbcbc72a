"""From a target, a corpus and options to a plan that trains Medusa heads."""

from pathlib import Path

import torch
from torch import Tensor, nn

from draftmesh.stages.draft.medusa.heads import MedusaHeads
from draftmesh.stages.draft.medusa.layouts import save_medusa, save_vllm
from draftmesh.stages.draft.medusa.loader import load_heads
from draftmesh.stages.draft.partialhead import PartialHead
from draftmesh.stages.task.training.base import HeadRecipe
from draftmesh.stages.task.training.material import Material
from draftmesh.stages.task.training.medusa.loss import MedusaLoss
from draftmesh.stages.task.training.medusa.options import MedusaOptions


class MedusaRecipe(HeadRecipe):
    """Medusa heads on the target's final-normed hidden state."""

    kind = "medusa"
    head: MedusaHeads
    loss: MedusaLoss

    def __init__(self, material: Material) -> None:
        started = material.started(load_heads)
        super().__init__(material)
        self.head = started or self._first(material.options.medusa)
        self.head.to(device="cpu", dtype=torch.float32).requires_grad_(True).train()
        self.depth = self.head.count
        vocabulary = self.head.token_map
        if vocabulary is None:
            vocabulary = torch.arange(self.target.vocab_size)
        rows = self._rows(vocabulary)
        if started is None and material.options.medusa.own_lm_head:
            self.head.lm_heads = nn.Parameter(rows.float().repeat(self.head.count, 1, 1))
        self.loss = MedusaLoss(self.head, rows, vocabulary, material.options.decay)

    def _first(self, options: MedusaOptions) -> MedusaHeads:
        vocab, hidden = self.target.vocab_size, self.target.hidden_size
        some = None if options.draft_vocab >= vocab else self.frequent(options.draft_vocab)
        return MedusaHeads.fresh(options.heads, options.layers, hidden, vocab, some)

    def _rows(self, vocabulary: Tensor) -> Tensor:
        return PartialHead(self.target, vocabulary).rows.cpu()

    def write(self, folder: Path) -> None:
        """The heads in Medusa's layout, and below it in vLLM's."""
        name, keys = self.checkpoint.name, {"draftmesh_draft": self.kind}
        extra = keys | {"target": name}
        save_medusa(self.head, folder, torch.bfloat16, name, extra)
        save_vllm(self.head, folder / "vllm", torch.bfloat16, self.loss.rows, extra)

    def describe(self) -> tuple[str, str]:
        """For the card."""
        shared = self.head.lm_heads is None
        layout = "Medusa's layout " + ("version 2" if shared else "version 1")
        whose = " The LM head is the target's and not stored." if shared else ""
        return (
            f"Medusa heads for {self.checkpoint.name}",
            f"{self.head.count} heads, {self.size()}, {layout}, bfloat16, drafting "
            f"{self.head.draft_vocab} of the target's tokens.{whose}",
        )
