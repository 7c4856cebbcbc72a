"""Attention registered with transformers: grouped queries without repeated keys, tree masks, sinks.

Every layer hands its masks on as the keyword `masks` (see `masks.py`); a model that drops the
keyword is refused at the first forward rather than silently attending to everything.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from draftmesh.registry import UserError
from draftmesh.stages.model.masks import Masks

NAME = "draftmesh"


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    masks: Masks | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """query [B, Hq, T, D], key and value [B, Hkv, S, D] -> [B, T, Hq, Dv].

    `s_aux` [Hq] are attention sinks (GPT-OSS), `softcap` bounds the scores (Gemma 2). Queries that
    share a key/value head are packed along T, so keys and values are read once and never repeated.
    """
    if masks is None:
        raise UserError(
            f"{type(module).__name__} does not pass keyword arguments on to its attention, so tree "
            "masks cannot reach it: choose another model (model.path)"
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    batch, heads, length, dim = query.shape
    groups = heads // key.shape[1]
    if s_aux is not None or softcap is not None:
        bias = masks.bias(sliding_window, query.dtype, query.device)
        out = _explicit(query, key, value, bias, scale, softcap, s_aux)
        return out.transpose(1, 2).contiguous(), None
    bias = masks.bias(sliding_window, query.dtype, query.device, groups)
    causal = bias is None and length > 1
    if causal:
        out = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale, enable_gqa=groups > 1
        )
    else:
        packed = query.reshape(batch, key.shape[1], groups * length, dim)
        out = F.scaled_dot_product_attention(packed, key, value, bias, scale=scale)
        out = out.reshape(batch, heads, length, -1)
    return out.transpose(1, 2).contiguous(), None


def _explicit(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    batch, heads, length, dim = query.shape
    groups = heads // key.shape[1]
    grouped = query.reshape(batch, key.shape[1], groups, length, dim)
    scores = (grouped @ key[:, :, None].transpose(-1, -2)) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if bias is None and length > 1:
        future = torch.ones(length, key.shape[2], dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    elif bias is not None:
        scores = scores + bias[:, :, None]
    if scores.dtype != torch.float64:
        scores = scores.float()
    if sinks is not None:
        column = sinks.to(scores.dtype).reshape(1, key.shape[1], groups, 1, 1)
        scores = torch.cat([scores, column.expand(batch, -1, -1, length, 1)], dim=-1)
    weights = scores.softmax(-1)[..., : key.shape[2]].to(value.dtype)
    return (weights @ value[:, :, None]).reshape(batch, heads, length, -1)


ALL_ATTENTION_FUNCTIONS.register(NAME, attention)
