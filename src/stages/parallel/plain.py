"""Forwards of a model by itself, as transformers runs it."""

from typing import Any

import torch
from torch import Tensor


def plain_forward(model: Any, tokens: Tensor) -> Tensor:
    """Logits [B, T, V] of tokens [B, T], with transformers' own attention, whatever is set.

    Hooks run; every rank of a split model calls this at the same time.
    """
    ours = model.config._attn_implementation
    model.set_attn_implementation("sdpa" if model._supports_sdpa else "eager")
    try:
        with torch.no_grad():
            logits: Tensor = model(tokens, use_cache=False).logits
    finally:
        model.set_attn_implementation(ours)
    return logits


def sample_tokens(model: Any, count: int, seed: int = 0) -> Tensor:
    """[1, count] random token ids (fewer in a short context), the same for the same vocabulary."""
    config = model.config.get_text_config()
    context = getattr(config, "max_position_embeddings", None) or count
    generator = torch.Generator().manual_seed(seed)
    size = (1, min(count, context))
    return torch.randint(config.vocab_size, size, generator=generator).to(model.device)
