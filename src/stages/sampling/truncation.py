"""Top-k, top-p and min-p of one line: transformers' rules without a sort of the vocabulary."""

import math

import torch
from torch import Tensor

from draftmesh.stages.sampling.candidates import Candidates

# Keeps rounding in a sum from removing what the exact rule would keep.
_SLACK = 1 - 1e-4
_REFINEMENTS = 2


def top_k(found: Candidates, k: int) -> Candidates:
    """TopKLogitsWarper: all that reach the k-th best score, so ties may exceed k."""
    least = found.scores.topk(min(k, found.scores.shape[0])).values[-1]
    return found.where(found.scores >= least)


def top_p(found: Candidates, mass: float) -> Candidates:
    """TopPLogitsWarper: the fewest largest probabilities that exceed `mass`.

    That rule sorts by ascending probability and removes what has a running sum of at most 1 - mass.
    A token's running sum is at most (mass known to be below it) + (number of the others) * (its
    probability); where that stays below 1 - mass the token is removed without sorting. Only what
    survives this bound is sorted, with the removed mass as the start of the sum. Of tokens tied at
    the edge the last ids stay (transformers leaves that to an unstable sort).
    """
    tail = 1 - mass
    probs = found.scores.softmax(-1)
    total = float(probs.sum(dtype=torch.float64))
    below, bound = 0.0, tail / probs.shape[0] * _SLACK
    for _ in range(_REFINEMENTS):
        index = (probs >= bound).nonzero().squeeze(-1)
        found, probs = found.at(index), probs[index]
        below = total - float(probs.sum(dtype=torch.float64))
        bound = (tail - below) / max(probs.shape[0], 1) * _SLACK
    return found.where(_above(found.scores, probs, below, tail))


def _above(scores: Tensor, probs: Tensor, below: float, tail: float) -> Tensor:
    """The sorted rule on what is left, `below` being the sum of what is gone -> bool [C]."""
    order = scores.argsort(stable=True)
    running = probs[order].double().cumsum(0).add_(below)
    above = running.to(probs.dtype) > tail
    above[-1:] = True
    return torch.empty_like(above).index_copy_(0, order, above)


def min_p(found: Candidates, ratio: float) -> Candidates:
    """MinPLogitsWarper: the probabilities of at least `ratio` times the largest."""
    near = found.scores.max() + (math.log(ratio) - 1e-3)
    found = found.where(found.scores >= near)
    probs = found.scores.softmax(-1)
    return found.where(probs >= ratio * probs.max())
