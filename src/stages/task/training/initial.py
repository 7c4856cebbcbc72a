"""A head's first weights, taken from the target where the shapes agree."""

from typing import Any

import torch
from torch import Tensor

from draftmesh.stages.draft.eagle.head import Head


def _copy(to: Tensor, source: Tensor) -> None:
    if to.shape == source.shape:
        to.copy_(source)


def _spread(source: Tensor, groups: int, head_dim: int) -> Tensor:
    """Key or value rows [kv * D, H], each head repeated `groups` times."""
    return source.unflatten(0, (-1, head_dim)).repeat_interleave(groups, 0).flatten(0, 1)


@torch.no_grad()
def _attention(head: Head, source: Any) -> None:
    """The target's projections on the hidden state's half; nothing yet for the embedding's."""
    own, config = head.midlayer.self_attn, head.config
    for name in ("q_proj", "k_proj", "v_proj"):
        weight, given = getattr(own, name).weight, getattr(source, name).weight
        if name != "q_proj" and weight.shape[0] % given.shape[0] == 0:
            given = _spread(given, weight.shape[0] // given.shape[0], config.head_dim)
        half = weight[:, -config.hidden :]
        if half.shape == given.shape:
            half.copy_(given)
    _copy(own.o_proj.weight, source.o_proj.weight)


@torch.no_grad()
def start_from_target(head: Head, model: Any, tokens: Tensor) -> None:
    """Set a version 3 head's draft vocabulary, LM head, norm, layer and `fc` from the target.

    tokens [Vd] ascending target ids. The layer starts as the target's last one and `fc` as the
    identity on the deepest captured layer. A feed-forward block with other parts (experts) gives
    nothing.
    """
    config = head.config
    layer = model.base_model.layers[-1]
    for name in ("gate_proj", "up_proj", "down_proj"):
        source = getattr(getattr(layer, "mlp", None), name, None)
        if source is not None:
            _copy(getattr(head.midlayer.mlp, name).weight, source.weight)
    _copy(head.midlayer.post_attention_layernorm.weight, layer.post_attention_layernorm.weight)
    _attention(head, layer.self_attn)
    head.fc.weight.mul_(0.1)
    if config.hidden == config.target_hidden:
        head.fc.weight[:, -config.hidden :] += torch.eye(config.hidden)
    if config.version == 3:
        _copy(head.midlayer.hidden_norm.weight, layer.input_layernorm.weight)
        head.d2t.copy_(tokens - torch.arange(len(tokens)))
        head.t2d.zero_()[tokens] = True
        _copy(head.norm.weight, model.base_model.norm.weight)
        _copy(head.lm_head.weight, model.get_output_embeddings().weight[tokens])
