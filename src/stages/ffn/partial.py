"""Sums over part of a token's experts."""

import torch
from torch import Tensor


def select_pairs(places: Tensor, first: int, count: int) -> tuple[Tensor, Tensor, list[int]]:
    """The (token, slot) pairs whose expert is one of `count` consecutive places from `first`.

    places [T, k] -> token of each pair, pair number (token * k + slot), both sorted by expert, and
    how many pairs each expert has.
    """
    flat = places.reshape(-1).to(torch.int64)
    pairs = ((flat >= first) & (flat < first + count)).nonzero().squeeze(1)
    experts = flat[pairs] - first
    pairs = pairs[experts.argsort(stable=True)]
    counts: list[int] = experts.bincount(minlength=count).tolist()
    return pairs // places.shape[1], pairs, counts


def partial_sums(rows: Tensor, tokens: Tensor, weights: Tensor | None, length: int) -> Tensor:
    """Add rows [R, H], times weights [R], to tokens [R] -> [length, H] in at least float32."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    scaled = rows.to(wide)
    if weights is not None:
        scaled = scaled * weights.to(wide)[:, None]
    return rows.new_zeros(length, rows.shape[-1], dtype=wide).index_add_(0, tokens, scaled)
