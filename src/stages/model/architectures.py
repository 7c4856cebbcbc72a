"""Small configs of many architectures, one per way of computing attention or feed-forward."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import AutoConfig


@dataclass(frozen=True)
class Size:
    """The dimensions that tiny models share; `window` counts tokens of sliding attention."""

    vocab_size: int
    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    intermediate_size: int
    experts: int
    experts_per_token: int
    context: int
    window: int

    @property
    def head_dim(self) -> int:
        """Of one attention head."""
        return self.hidden_size // self.heads


def tiny_config(arch: str, size: Size, extra: dict[str, Any]) -> Any:
    """The Hugging Face config of an architecture at this size; `extra` overrides any key."""
    model_type, keys = ARCHITECTURES[arch]
    return AutoConfig.for_model(model_type, **{**_common(size), **keys(size), **extra})


def _common(size: Size) -> dict[str, Any]:
    return {
        "vocab_size": size.vocab_size,
        "hidden_size": size.hidden_size,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "intermediate_size": size.intermediate_size,
        "max_position_embeddings": size.context,
        "bos_token_id": None,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "tie_word_embeddings": False,  # tied random weights mostly repeat the last token
    }


def _plain(size: Size) -> dict[str, Any]:
    return {"head_dim": size.head_dim}


def _window(size: Size) -> dict[str, Any]:
    return {"head_dim": size.head_dim, "sliding_window": size.window}


def _alternating(size: Size) -> dict[str, Any]:
    kinds = ("sliding_attention", "full_attention")
    return {
        **_window(size),
        "layer_types": [kinds[i % 2] for i in range(size.layers)],
        "query_pre_attn_scalar": size.head_dim,
    }


def _gpt2(size: Size) -> dict[str, Any]:
    return {"n_inner": size.intermediate_size}


def _mixtral(size: Size) -> dict[str, Any]:
    return {
        "head_dim": size.head_dim,
        "num_local_experts": size.experts,
        "num_experts_per_tok": size.experts_per_token,
    }


def _moe(size: Size) -> dict[str, Any]:
    return {
        "head_dim": size.head_dim,
        "num_experts": size.experts,
        "num_experts_per_tok": size.experts_per_token,
        "moe_intermediate_size": size.intermediate_size // 2,
    }


def _olmoe(size: Size) -> dict[str, Any]:
    return {"num_experts": size.experts, "num_experts_per_tok": size.experts_per_token}


def _deepseek_v3(size: Size) -> dict[str, Any]:
    return {
        "num_key_value_heads": size.heads,
        "n_routed_experts": size.experts,
        "num_experts_per_tok": size.experts_per_token,
        "n_shared_experts": 1,
        "n_group": 2,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "moe_intermediate_size": size.intermediate_size // 2,
        "q_lora_rank": size.hidden_size // 2,
        "kv_lora_rank": size.hidden_size // 4,
        "qk_nope_head_dim": size.head_dim,
        "qk_rope_head_dim": size.head_dim // 2,
        "v_head_dim": size.head_dim,
    }


def _gpt_oss(size: Size) -> dict[str, Any]:
    yarn = {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "original_max_position_embeddings": size.context // 4,
    }
    return {**_alternating(size), **_mixtral(size), "rope_parameters": yarn}


def _qwen3_next(size: Size) -> dict[str, Any]:
    return {
        **_moe(size),
        "shared_expert_intermediate_size": size.intermediate_size // 2,
        "linear_num_key_heads": size.kv_heads,
        "linear_num_value_heads": size.heads,
        "linear_key_head_dim": size.head_dim,
        "linear_value_head_dim": size.head_dim,
        "layer_types": [
            "full_attention" if i % 2 else "linear_attention" for i in range(size.layers)
        ],
    }


def _mamba(size: Size) -> dict[str, Any]:
    return {"state_size": 8, "intermediate_size": 2 * size.hidden_size}


ARCHITECTURES: dict[str, tuple[str, Callable[[Size], dict[str, Any]]]] = {
    "llama": ("llama", _plain),
    "qwen2": ("qwen2", lambda size: {}),
    "qwen3": ("qwen3", _plain),
    "mistral": ("mistral", _window),
    "phi3": ("phi3", lambda size: {}),
    "gpt2": ("gpt2", _gpt2),
    "gpt_neox": ("gpt_neox", lambda size: {}),
    "bloom": ("bloom", lambda size: {}),
    "gemma2": ("gemma2", _alternating),
    "gemma3": ("gemma3_text", _alternating),
    "mixtral": ("mixtral", _mixtral),
    "qwen3_moe": ("qwen3_moe", _moe),
    "olmoe": ("olmoe", _olmoe),
    "deepseek_v3": ("deepseek_v3", _deepseek_v3),
    "gpt_oss": ("gpt_oss", _gpt_oss),
    "qwen3_next": ("qwen3_next", _qwen3_next),
    "mamba": ("mamba", _mamba),
}
"""Name of `model.arch` -> (transformers' model type, the keys it needs beside the common ones)."""
