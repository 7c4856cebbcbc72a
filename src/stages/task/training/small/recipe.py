"""From a target, a corpus and options to a plan that distils a small draft model."""

from pathlib import Path

import torch

from draftmesh.stages.draft.partialhead import PartialHead
from draftmesh.stages.draft.sharing import Sharing, bare_llama, llama_config
from draftmesh.stages.task.training.base import HeadRecipe
from draftmesh.stages.task.training.material import Material
from draftmesh.stages.task.training.small.initial import start_from_layers
from draftmesh.stages.task.training.small.loss import SmallLoss


class SmallRecipe(HeadRecipe):
    """A small Llama with the target's width, embedding and part of its LM head."""

    kind = "small"
    loss: SmallLoss

    def __init__(self, material: Material) -> None:
        options = material.options.small
        started = material.started(Sharing.load)
        super().__init__(material)
        self.sharing = started or self._first(options.layers, options.draft_vocab)
        self.head = self.sharing.model.model.float().train()
        rows = PartialHead(self.target, self.sharing.ids).rows
        self.loss = SmallLoss(self.head, self.target, rows, self.sharing.ids, options.regress)

    def _first(self, layers: int, draft_vocab: int) -> Sharing:
        model = bare_llama(llama_config(self.target.config, layers))
        start_from_layers(model, self.checkpoint.model)
        return Sharing(model, self.frequent(draft_vocab))

    def write(self, folder: Path) -> None:
        """A Hugging Face folder without what the target has."""
        self.sharing.save(folder, torch.bfloat16, self.checkpoint.name)

    def describe(self) -> tuple[str, str]:
        """For the card."""
        layers = len(self.sharing.model.model.layers)
        return (
            f"Small draft model for {self.checkpoint.name}",
            f"A Llama of {layers} layers, {self.size()}, Hugging Face layout, bfloat16. The token "
            f"embedding and the LM head are the target's and not stored; it drafts "
            f"{len(self.sharing.ids)} of the target's tokens.",
        )
