"""How the children of a tree's nodes are chosen."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.sampling import History
from draftmesh.registry.contracts.stage import DraftContext


@dataclass(frozen=True)
class Places:
    """Where M nodes that get children stand: positions [B] of their children, and what came before
    them, for processors that look back (the M nodes are the history's last)."""

    positions: Tensor
    history: History | None


def confidence(context: DraftContext, chance: Chance, logits: Tensor, places: Places) -> Tensor:
    """logits [B, M, V] -> how likely each token is the target's choice, as a log [B, M, V].

    Plainly log q. A coupled draft knows the noise that the target will draw with: the target picks
    the largest log p + noise, so with log p = log q + an error of a Gumbel's size, the softmax of
    log q + noise.
    """
    if context.sampler.greedy or not context.coupled:
        return context.sampler.log_probs(logits, places.history)
    probs = context.sampler(logits, places.history).probs
    assert probs is not None
    rows, nodes, vocab = probs.shape
    lines = torch.arange(rows, device=probs.device).repeat_interleave(nodes)
    scores = chance.scores(
        probs.reshape(-1, vocab), lines, places.positions[lines], Stream.TARGET
    ).view(rows, nodes, vocab)
    return (scores / scores.sum(-1, keepdim=True)).log()


def likeliest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """scores [B, M, V] -> the best `count` of each node: scores and token ids [B, M, count]; where
    there are fewer, -inf."""
    found = scores.nan_to_num(nan=-torch.inf, posinf=-torch.inf).topk(
        min(count, scores.shape[-1]), dim=-1
    )
    missing = count - found.values.shape[-1]
    if missing == 0:
        return found.values, found.indices
    pad = torch.nn.functional.pad
    return pad(found.values, (0, missing), value=-torch.inf), pad(found.indices, (0, missing))


def draw_siblings(
    chance: Chance, q: Tensor, positions: Tensor, streams: list[int], *, distinct: bool
) -> tuple[Tensor, Tensor]:
    """One node's children, drawn one after another from q [B, V].

    Each takes its stream at positions [B]; `distinct` takes a drawn token out of q for the later
    ones. Returns tokens [B, C] and valid [B, C]: False where q has no token left.
    """
    rows = torch.arange(len(q), device=q.device)
    left = q.clone() if distinct else q
    tokens, valid = [], []
    for stream in streams:
        some = left.sum(-1) > 0
        drawable = left if bool(some.all()) else _first_token_where(~some, left)
        drawn = chance.sample(drawable, rows, positions, stream)
        if distinct:
            left[rows, drawn] = 0
        tokens.append(drawn)
        valid.append(some)
    return torch.stack(tokens, 1), torch.stack(valid, 1)


def _first_token_where(empty: Tensor, q: Tensor) -> Tensor:
    certain = torch.zeros_like(q)
    certain[:, 0] = 1
    return torch.where(empty.unsqueeze(-1), certain, q)
