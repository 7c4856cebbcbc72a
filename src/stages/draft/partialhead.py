"""Some rows of the target's LM head as one matrix."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.target import Target
from draftmesh.stages.model.logits import scaled
from draftmesh.stages.model.packed import linear

PIECE = 256


class PartialHead:
    """The target's logits for some tokens only [Vd], as its whole LM head would give them.

    Copies the rows once, so a step multiplies by Vd rows and not by V. The rows come out of the
    head's own product with unit vectors, so that it may be split over ranks (built by all of them).
    """

    @torch.no_grad()
    def __init__(self, target: Target, tokens: Tensor) -> None:
        self.config = target.config
        head = target.model.get_output_embeddings()
        origin = torch.zeros(1, target.hidden_size, dtype=target.dtype, device=target.device)
        tokens = tokens.to(target.device)
        bias = head(origin)[0, tokens]
        units = torch.eye(target.hidden_size, dtype=target.dtype, device=target.device)
        columns = [head(piece)[:, tokens] for piece in units.split(PIECE)]
        self.bias = bias if bool(bias.any()) else None
        rows = torch.cat(columns)
        self.rows = (rows if self.bias is None else rows - bias).T.contiguous()
        self.linear = linear(self.rows, self.bias)

    def __call__(self, hidden: Tensor) -> Tensor:
        """hidden [..., H] -> logits [..., Vd]."""
        return scaled(self.linear(hidden), self.config)
