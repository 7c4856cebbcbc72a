"""Rotary position embedding of a head, plain or scaled."""

import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from draftmesh.stages.draft.eagle.config import HeadConfig
from draftmesh.stages.model.progress import quiet

SCALINGS = ("linear", "dynamic", "llama3", "yarn")
"""Kinds of rope scaling whose frequencies are fixed up to the head's last position."""


class Rotary:
    """Half-split rotary embedding as in Llama, from a table.

    The table is computed in float64 whatever the head's dtype. Positions past its end (where a head
    never drafts) count as its last.
    """

    def __init__(self, config: HeadConfig) -> None:
        self.config = config
        self._tables: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def __call__(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """positions [B, T] -> cos and signed sin, [B, 1, T, D] each."""
        key = positions.device, dtype
        if key not in self._tables:
            self._tables[key] = self._compute(*key)
        cos, sin = self._tables[key]
        index = positions[:, None].clamp_max(self.config.max_position - 1)
        return cos[index], sin[index]

    def _compute(self, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        speeds, factor = frequencies(self.config)
        angles = torch.arange(self.config.max_position)[:, None] * speeds
        cos, sin = angles.cos() * factor, angles.sin() * factor
        tables = torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
        return tables[0].to(device, dtype), tables[1].to(device, dtype)


def frequencies(config: HeadConfig) -> tuple[Tensor, float]:
    """Angles per position [D/2] float64, and what cosines and sines are multiplied by.

    Scaled ones are transformers' own. Raises KeyError or another error of transformers for
    parameters that its kind of scaling cannot have.
    """
    scaling = config.rope_scaling
    if scaling is None:
        exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
        return config.rope_theta**-exponents, 1.0
    with quiet():
        shape = LlamaConfig(
            hidden_size=config.hidden,
            num_attention_heads=config.heads,
            head_dim=config.head_dim,
            max_position_embeddings=config.max_position,
            rope_parameters={**scaling, "rope_theta": config.rope_theta},
        )
        speeds, factor = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](shape, torch.device("cpu"))
    return speeds.double(), factor


def rotate(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Turn queries or keys [B, heads, T, D] by their positions."""
    cos, sin = rotary
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin
