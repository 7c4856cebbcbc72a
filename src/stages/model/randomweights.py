"""Weights of tiny models: random, but the same on every machine, in every dtype, on every rank."""

from typing import Any

import torch
from torch import Tensor


def randomise(model: Any, seed: int, std: float) -> None:
    """Draw every weight from a generator of its own seeded with `seed`.

    Matrices, embeddings and experts get a normal distribution of deviation `std`, an LM head of
    its own three times that, which gives distributions clear favourites. Vectors (norms, biases,
    sinks) keep their initial values plus a tenth of noise, so that a dropped bias or a norm in the
    wrong place shows.
    """
    head = model.get_output_embeddings().weight.data_ptr()
    tied = head == model.get_input_embeddings().weight.data_ptr()
    generator = torch.Generator().manual_seed(seed)
    seen: set[int] = set()
    for _, tensor in sorted(model.state_dict().items()):
        if not tensor.is_floating_point() or tensor.data_ptr() in seen:
            continue  # tied weights are drawn once
        seen.add(tensor.data_ptr())
        noise = _noise(tensor, generator)
        if tensor.ndim > 1:
            peaked = tensor.data_ptr() == head and not tied
            tensor.copy_(noise * (3 * std if peaked else std))
        else:
            tensor.copy_(tensor + 0.1 * noise)


def _noise(tensor: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
