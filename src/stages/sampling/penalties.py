"""Presence and frequency penalties, which transformers does not have."""

import torch
from torch import Tensor
from transformers import LogitsProcessor


class WrittenTokenPenalty(LogitsProcessor):
    """Lower the logits of tokens that the model has already written.

    logit - frequency * count - presence * (count > 0), with counts over the generated text only, as
    in OpenAI's API and vLLM (transformers' repetition penalty counts the prompt too).
    """

    def __init__(self, presence: float, frequency: float) -> None:
        self.presence = presence
        self.frequency = frequency

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """input_ids [R, L] (ids past the vocabulary are ignored), scores [R, V] -> [R, V]."""
        rows, vocab = scores.shape
        counts = scores.new_zeros(rows, vocab + 1)
        ids = input_ids.clamp(max=vocab)
        counts.scatter_add_(1, ids, torch.ones_like(ids, dtype=scores.dtype))
        counts = counts[:, :vocab]
        return scores - self.frequency * counts - self.presence * (counts > 0)
