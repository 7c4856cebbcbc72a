"""How many layers of a model fit into memory in float64."""

import torch

from draftmesh.registry.contracts.target import Target

BYTES = 8
USABLE = 0.75
"""Of the free memory; the rest is for activations, key/values and a draft."""


def layers_that_fit(target: Target, free: int, shards: int) -> int:
    """How many of the first layers fit into `free` bytes in float64; 0 if not even one does.

    A model is loaded whole before it is split into `shards`.
    """
    total = sum(p.numel() for p in target.model.parameters()) * shards
    outside = sum(p.numel() for end in _ends(target) for p in end.parameters()) * shards
    each = max(1, (total - outside) // target.num_layers)
    room = int(free * USABLE / BYTES) - outside
    return max(0, min(target.num_layers, room // each))


def _ends(target: Target) -> list[torch.nn.Module]:
    """Embedding and LM head (one module if they are tied)."""
    model = target.model
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    tied = head is None or head.weight is embedding.weight
    return [embedding] if tied else [embedding, head]
