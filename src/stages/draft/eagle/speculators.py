"""Writing a version 3 head in the layout of the `speculators` library, which vLLM reads."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.safeai import tensors
from draftmesh.stages.draft.headfiles import dtype_name, write_head


def save_speculators(
    head: Head, folder: Path, dtype: torch.dtype, target: str, embedding: Tensor, tokens: int
) -> None:
    """Write config.json and model.safetensors.

    target: the model's name or Hub id; embedding [V, H]: its table, which this layout stores;
    tokens: draft tokens to propose by default. Version 3 only.
    """
    assert head.config.version == 3
    state = {name.replace("midlayer.", "layers.0."): value for name, value in tensors(head).items()}
    state.setdefault("embed_tokens.weight", embedding)
    config = _config(head, target, tokens) | {"torch_dtype": dtype_name(dtype)}
    write_head(folder, state, config, dtype)


def _config(head: Head, target: str, tokens: int) -> dict[str, Any]:
    shape = head.config
    layer = {
        "model_type": "qwen3" if shape.qk_norm else "llama",
        "vocab_size": shape.vocab,
        "num_hidden_layers": 1,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": shape.act,
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.rope_theta,
        "rope_scaling": None if shape.rope_scaling is None else dict(shape.rope_scaling),
        "attention_bias": shape.qkv_bias,
        "max_position_embeddings": shape.max_position,
    }
    proposal = {
        "proposal_type": "greedy",
        "speculative_tokens": tokens,
        "verifier_accept_k": 1,
        "accept_tolerance": 0.0,
    }
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.3.0",
        "draft_vocab_size": shape.draft_vocab,
        "norm_before_residual": shape.residual_normed,
        "norm_before_fc": shape.input_norm,
        "fc_norm": shape.fc_norm,
        "norm_output": shape.feed_normed,
        "embed_requires_grad": False,
        "target_hidden_size": shape.target_hidden if shape.own_embedding else None,
        "eagle_aux_hidden_state_layer_ids": list(shape.capture),
        "tie_word_embeddings": False,
        "transformer_layer_config": layer,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [proposal],
            "verifier": {"name_or_path": target, "architectures": ["LlamaForCausalLM"]},
        },
    }
