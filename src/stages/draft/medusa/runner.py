"""Runs Medusa's heads on the last hidden state of every row."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Step
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.medusa.heads import MedusaHeads
from draftmesh.stages.draft.partialhead import PartialHead
from draftmesh.stages.draft.vocabulary import whole_vocabulary


class MedusaRunner:
    """The heads of one target, and for each row the committed tokens' count and last state."""

    def __init__(self, heads: MedusaHeads, target: Target) -> None:
        self.heads, self.target = heads, target
        shared, some = heads.lm_heads is None, heads.token_map
        self.part = PartialHead(target, some) if shared and some is not None else None

    def start(self, rows: int) -> None:
        """A new batch."""
        self.lengths = torch.zeros(rows, dtype=torch.long, device=self.target.device)
        self.hidden = self.heads.weight.new_zeros(rows, self.heads.hidden)

    def observe(self, step: Step) -> None:
        """Keep the hidden state at each row's last token."""
        features = step.features[self.target.num_layers]
        rows = torch.arange(len(step.lengths), device=features.device)
        self.hidden = features[rows, step.lengths - 1].to(self.heads.weight.dtype)
        self.lengths = self.lengths + step.lengths

    def logits(self, depth: int) -> Tensor:
        """The first `depth` heads' logits [B, depth, V] over the target's vocabulary; -inf for
        tokens that are not in the heads'."""
        states = self.heads.states(self.hidden, depth)
        if self.heads.lm_heads is not None:
            logits = self.heads.logits(states)
        elif self.part is not None:
            logits = self.part(states)
        else:
            logits = self.target.lm_head(states)
        logits = logits.transpose(0, 1)
        if self.heads.token_map is None:
            return logits
        return whole_vocabulary(logits, self.heads.token_map, self.heads.vocab)

    def select(self, rows: Tensor) -> None:
        """Keep only rows [B'], in that order."""
        self.lengths, self.hidden = self.lengths[rows], self.hidden[rows]
