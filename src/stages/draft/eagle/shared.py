"""What a head has in common with the target: copies of its tables are not kept twice."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.target import Target

_PROBES = 4096


def drop_copies(state: dict[str, Tensor], target: Target) -> None:
    """Take an embedding out of a head's tensors if it is the target's, and so an LM head of
    version 1; the target's may be split over ranks, so all of a group call this."""
    embedding, lm_head = state.get("embed_tokens.weight"), state.get("lm_head.weight")
    shape = (target.vocab_size, target.hidden_size)
    if embedding is not None and embedding.shape == shape and _same_rows(embedding, target):
        del state["embed_tokens.weight"]
    if lm_head is None or "midlayer.hidden_norm.weight" in state:
        return
    if lm_head.shape == shape and _same_logits(lm_head, target):
        del state["lm_head.weight"]


@torch.no_grad()
def _same_rows(table: Tensor, target: Target) -> bool:
    """Compares rows spread over the vocabulary."""
    step = max(1, len(table) // _PROBES)
    ids = torch.arange(0, len(table), step)
    ours = target.embed(ids).cpu()
    return _close(table[ids].to(target.dtype), ours)


@torch.no_grad()
def _same_logits(table: Tensor, target: Target) -> bool:
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(2, table.shape[1], generator=generator).to(target.dtype)
    ours = target.lm_head(probe.to(target.device)).cpu()
    return _close(probe @ table.to(target.dtype).T, ours)


def _close(theirs: Tensor, ours: Tensor) -> bool:
    """Equal but for the rounding of half-precision files, relative to the size of all entries."""
    error = (theirs.double() - ours.double()).square().mean().sqrt()
    return bool(error <= 2**-7 * ours.double().square().mean().sqrt())
