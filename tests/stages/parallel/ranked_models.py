"""Tiny random models for tests in several ranks; all weights are random, norms and biases too."""

from typing import Any

import torch
import transformers as hf

BASE: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
    "pad_token_id": 0,
}
CONFIGS: dict[str, tuple[type, dict[str, Any]]] = {
    "llama": (hf.LlamaConfig, {}),
    "llama_9_3": (
        hf.LlamaConfig,
        {
            "hidden_size": 36,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "head_dim": 4,
            "intermediate_size": 50,
            "tie_word_embeddings": True,
            "attention_bias": True,
            "mlp_bias": True,
        },
    ),
    "qwen2": (hf.Qwen2Config, {"tie_word_embeddings": True}),
    "qwen3": (hf.Qwen3Config, {}),
    "gemma2": (hf.Gemma2Config, {"query_pre_attn_scalar": 8}),
    "phi3": (hf.Phi3Config, {}),
    "mixtral": (hf.MixtralConfig, {"num_local_experts": 6, "num_experts_per_tok": 2}),
    "two_experts": (hf.MixtralConfig, {"num_local_experts": 2, "num_experts_per_tok": 1}),
    "qwen3_moe": (
        hf.Qwen3MoeConfig,
        {"num_experts": 8, "num_experts_per_tok": 4, "moe_intermediate_size": 20},
    ),
    "olmoe": (hf.OlmoeConfig, {"num_experts": 8, "num_experts_per_tok": 3}),
    "deepseek_v3": (
        hf.DeepseekV3Config,
        {
            "n_routed_experts": 8,
            "num_experts_per_tok": 4,
            "n_group": 2,
            "topk_group": 1,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 20,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 8,
            "v_head_dim": 8,
            "num_key_value_heads": 4,
        },
    ),
    "afmoe": (
        hf.AfmoeConfig,
        {
            "num_experts": 8,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 20,
            "num_dense_layers": 1,
        },
    ),
    "gpt_oss": (
        hf.GptOssConfig,
        {
            "num_local_experts": 8,
            "num_experts_per_tok": 3,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        },
    ),
}
MOE = ("mixtral", "qwen3_moe", "olmoe", "deepseek_v3", "afmoe", "gpt_oss")


def tiny(name: str, dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    """A tiny model of an architecture; the same weights for the same name."""
    kind, options = CONFIGS[name]
    config = kind(**{**BASE, **options, **changes})
    torch.manual_seed(0)
    model = hf.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(0.3 * noise)
    if name in MOE:
        model.set_experts_implementation("eager")
    return model.to(dtype).eval().requires_grad_(False)


def tokens(seed: int, *shape: int) -> torch.Tensor:
    """Token ids of the tiny vocabularies."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, 61, shape, generator=generator)
