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


def _attention(head: Head, source: Any) -> None:
    """The target's projections on the hidden state's half; the embedding's half stays random."""
    own, config = head.midlayer.self_attn, head.config
    for name in ("q_proj", "k_proj", "v_proj"):
        weight, given = getattr(own, name).weight, getattr(source, name).weight
        if name != "q_proj" and weight.shape[0] % given.shape[0] == 0:
            given = _spread(given, weight.shape[0] // given.shape[0], config.head_dim)
        _copy(weight[:, -config.hidden :], given)
    _copy(own.o_proj.weight, source.o_proj.weight)


def _layer(head: Head, source: Any) -> None:
    """The target's layer; a feed-forward block with other parts (experts) gives nothing."""
    for name in ("gate_proj", "up_proj", "down_proj"):
        given = getattr(getattr(source, "mlp", None), name, None)
        if given is not None:
            _copy(getattr(head.midlayer.mlp, name).weight, given.weight)
    _copy(head.midlayer.hidden_norm.weight, source.input_layernorm.weight)
    _copy(head.midlayer.post_attention_layernorm.weight, source.post_attention_layernorm.weight)
    _attention(head, source.self_attn)


@torch.no_grad()
def start_from_target(head: Head, model: Any, tokens: Tensor) -> None:
    """Set a head's first weights; `fc` starts as the identity on the deepest captured layer.

    Version 3 takes the draft vocabulary tokens [Vd] (ascending target ids), the LM head's rows, the
    final norm and the last layer. Version 1, whose output stands for a normed hidden state, starts
    close to repeating its input.
    """
    config = head.config
    head.fc.weight.mul_(0.1)
    if config.hidden == config.target_hidden:
        head.fc.weight[:, -config.hidden :] += torch.eye(config.hidden)
    if config.version == 1:
        head.midlayer.self_attn.o_proj.weight.mul_(0.1)
        head.midlayer.mlp.down_proj.weight.mul_(0.1)
        return
    _layer(head, model.base_model.layers[-1])
    head.d2t.copy_(tokens - torch.arange(len(tokens)))
    head.t2d.zero_()[tokens] = True
    _copy(head.norm.weight, model.base_model.norm.weight)
    _copy(head.lm_head.weight, model.get_output_embeddings().weight[tokens])
