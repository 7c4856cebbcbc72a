"""The head's decoder layer, with its attention left to the caller."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import ACT2FN

from draftmesh.stages.draft.eagle.config import HeadConfig
from draftmesh.stages.draft.eagle.rotary import rotate


class Norm(nn.Module):
    """RMSNorm computed in float32 (float64 for float64 input)."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x [..., H] -> [..., H]."""
        return functional.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class Attention(nn.Module):
    """Projections of grouped-query attention; who attends to whom is the caller's."""

    def __init__(self, config: HeadConfig, width: int) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.q_proj = nn.Linear(width, queries, bias=config.qkv_bias)
        self.k_proj = nn.Linear(width, keys, bias=config.qkv_bias)
        self.v_proj = nn.Linear(width, keys, bias=config.qkv_bias)
        self.o_proj = nn.Linear(queries, config.hidden, bias=config.o_bias)
        self.q_norm = Norm(config.head_dim, config.eps) if config.qk_norm else nn.Identity()
        self.k_norm = Norm(config.head_dim, config.eps) if config.qk_norm else nn.Identity()

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def queries(self, x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        """x [B, T, W] -> rotated queries [B, heads, T, D]."""
        return rotate(self.q_norm(self._split(self.q_proj(x))), rotary)

    def keys_values(self, x: Tensor, rotary: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """x [B, T, W] -> rotated keys and values [B, kv_heads, T, D]."""
        keys = self.k_norm(self._split(self.k_proj(x)))
        return rotate(keys, rotary), self._split(self.v_proj(x))

    def output(self, heads: Tensor) -> Tensor:
        """Attended values [B, heads, T, D] -> [B, T, H]."""
        return self.o_proj(heads.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """Gated feed-forward block."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.act = ACT2FN[config.act]
        self.gate_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.down_proj = nn.Linear(config.intermediate, config.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., H] -> [..., H]."""
        return self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """A Llama decoder layer whose attention reads `W` channels and whose residual is given.

    Version 1 has no input norm (EAGLE, arXiv 2401.15077); version 3 norms the embedding and the
    hidden state apart and attends over both (EAGLE-3, arXiv 2503.01840).
    """

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        wide = config.version == 3
        if wide:
            self.hidden_norm = Norm(config.hidden, config.eps)
            self.input_layernorm = Norm(config.hidden, config.eps)
        self.self_attn = Attention(config, config.hidden * (2 if wide else 1))
        self.post_attention_layernorm = Norm(config.hidden, config.eps)
        self.mlp = Mlp(config)

    def finish(self, residual: Tensor, heads: Tensor) -> Tensor:
        """The layer's output [B, T, H] from its residual and the attended values."""
        x = residual + self.self_attn.output(heads)
        return x + self.mlp(self.post_attention_layernorm(x))
