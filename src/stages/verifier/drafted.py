"""The distributions that drafted tokens were drawn from, and what they leave of the target's."""

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.draft import Proposal


def refuse_dynamic(proposal: Proposal, verifier: str) -> None:
    """Raises UserError for a tree whose shape depended on its sampled tokens."""
    if not proposal.fixed_shape:
        raise UserError(
            f"verifier={verifier} is biased for a dynamic tree: set verifier=match, or"
            " draft.shape=static or chain"
        )


def drawn_with(proposal: Proposal) -> Tensor:
    """q of each node's own token, as if it had no earlier sibling: float [B, N], 1 if one-hot."""
    if proposal.q is None:
        return torch.ones_like(proposal.tokens, dtype=torch.float32)
    assert proposal.q_index is not None
    rows = torch.arange(len(proposal.tokens), device=proposal.tokens.device).unsqueeze(-1)
    drawn = proposal.q[rows, proposal.q_index.clamp(min=0), proposal.tokens]
    return torch.where(proposal.q_index < 0, torch.ones_like(drawn), drawn)


def draft_rows(proposal: Proposal, rows: Tensor, nodes: Tensor, like: Tensor) -> Tensor:
    """q of the nodes [R] of rows [R] -> [R, V], one-hot where the token was not drawn.

    `like` [R, V] gives the vocabulary and the dtype.
    """
    tokens = proposal.tokens[rows, nodes].unsqueeze(-1)
    if proposal.q is None:
        return torch.zeros_like(like).scatter_(1, tokens, 1)
    assert proposal.q_index is not None
    assert proposal.q.shape[-1] == like.shape[-1], "draft and target vocabularies differ"
    index = proposal.q_index[rows, nodes]
    q = proposal.q[rows, index.clamp(min=0)].to(like.dtype)
    certain = (index < 0).nonzero().squeeze(-1)
    q[certain] = 0
    q[certain, tokens[certain, 0]] = 1
    return q


def leave_out(
    proposal: Proposal, q: Tensor, rows: Tensor, nodes: Tensor, earlier: Tensor
) -> Tensor:
    """q [R, V] of the nodes [R] without earlier siblings [R, J] that were drawn from the same q."""
    if proposal.replacement or proposal.q_index is None or earlier.shape[1] == 0:
        return q
    index = proposal.q_index[rows]
    mine = index.gather(1, nodes.unsqueeze(-1))
    same = (index.gather(1, earlier) == mine) & (mine >= 0)
    drawn = proposal.tokens[rows].gather(1, earlier)
    gone = torch.zeros_like(q).scatter_add_(1, drawn, same.to(q.dtype))
    left = q.masked_fill(gone > 0, 0)
    total = left.sum(-1, keepdim=True)
    return torch.where(total > 0, left / total, left)


def ratio(p: Tensor, q: Tensor) -> Tensor:
    """p / q, 0 where q is 0 (such a token can't have been drawn)."""
    return torch.where(q > 0, p / q, torch.zeros_like(p))


def residual(p: Tensor, q: Tensor) -> Tensor:
    """max(p - q, 0) [R, V], normalised; p itself where nothing is left.

    Nothing is left only where p equals q, which rejects with probability 0 (but for rounding).
    """
    left = (p - q).clamp_(min=0)
    total = left.sum(-1, keepdim=True)
    return torch.where(total > 0, left / total, p)
