"""A head run the slow way: whole sequences, no cache, straight from the tensors of the file."""

import torch
from torch import Tensor
from torch.nn.functional import silu


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight


def _rope(x: Tensor) -> Tensor:
    length, dim = x.shape[-2:]
    powers = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angle = torch.arange(length)[:, None] * 10000.0**-powers
    first, second = x[..., : dim // 2], x[..., dim // 2 :]
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def _attend(x: Tensor, w: dict[str, Tensor], prefix: str) -> Tensor:
    def split(name: str) -> Tensor:
        return (x @ w[f"{prefix}.self_attn.{name}_proj.weight"].T).unflatten(-1, (-1, 8))

    q, k, v = (split(name).transpose(0, 1) for name in "qkv")
    groups = q.shape[0] // k.shape[0]
    q, k = _rope(q), _rope(k).repeat_interleave(groups, 0)
    scores = q @ k.mT / 8**0.5
    future = torch.ones(scores.shape[-2:]).triu(1).bool()
    heads = scores.masked_fill(future, -torch.inf).softmax(-1) @ v.repeat_interleave(groups, 0)
    return heads.transpose(0, 1).flatten(1) @ w[f"{prefix}.self_attn.o_proj.weight"].T


def _mlp(x: Tensor, w: dict[str, Tensor], prefix: str) -> Tensor:
    normed = _rms(x, w[f"{prefix}.post_attention_layernorm.weight"])
    gate = silu(normed @ w[f"{prefix}.mlp.gate_proj.weight"].T)
    up = normed @ w[f"{prefix}.mlp.up_proj.weight"].T
    return x + (gate * up) @ w[f"{prefix}.mlp.down_proj.weight"].T


def eagle1(w: dict[str, Tensor], embedding: Tensor, hidden: Tensor) -> Tensor:
    """embedding, hidden [T, H] -> the layer's outputs [T, H]; tensors named as in the file."""
    x = torch.cat([embedding, hidden], -1) @ w["fc.weight"].T + w.get("fc.bias", torch.tensor(0.0))
    return _mlp(x + _attend(x, w, "layers.0"), w, "layers.0")


def eagle3(w: dict[str, Tensor], embedding: Tensor, g: Tensor) -> Tensor:
    """embedding and g [T, H] -> the layer's outputs [T, H], not yet normed."""
    wide = torch.cat(
        [
            _rms(embedding, w["midlayer.input_layernorm.weight"]),
            _rms(g, w["midlayer.hidden_norm.weight"]),
        ],
        -1,
    )
    return _mlp(g + _attend(wide, w, "midlayer"), w, "midlayer")


def eagle3_logits(w: dict[str, Tensor], output: Tensor) -> Tensor:
    return _rms(output, w["norm.weight"]) @ w["lm_head.weight"].T
