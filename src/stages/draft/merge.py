"""Two proposals for one batch become one."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from draftmesh.registry.contracts.draft import Proposal


def merge_proposals(first: Proposal, second: Proposal, second_rows: Tensor) -> Proposal:
    """The rows of `second` where second_rows [B] says so, those of `first` elsewhere.

    Trees, q, depths and ways to draw siblings may differ. The hidden states of a self-speculating
    draft stay only if no row of the other has a proposal.
    """
    if not bool((first.valid.any(1) & ~second_rows).any()):
        return replace(second, valid=second.valid & second_rows[:, None])
    size = max(first.size, second.size)
    one, two = _widened(first, size), _widened(second, size)
    if one.replacement != two.replacement:
        one, two = _own_q(one), _own_q(two)
    rows = second_rows[:, None]
    q, index = _merged_q(one, two, second_rows)
    return Proposal(
        torch.where(rows, two.tokens, one.tokens),
        torch.where(rows, two.parents, one.parents),
        torch.where(rows, two.valid, one.valid),
        q,
        index,
        replacement=one.replacement and two.replacement,
        fixed_shape=one.fixed_shape and two.fixed_shape,
    )


def _widened(proposal: Proposal, size: int) -> Proposal:
    """More nodes, none of them valid, that leave a chain a chain; q_index is always there."""
    more = (0, size - proposal.size)
    below = torch.arange(proposal.size - 1, size - 1, device=proposal.parents.device)
    index = torch.full_like(proposal.tokens, -1)
    if proposal.q_index is not None:
        index = proposal.q_index
    return replace(
        proposal,
        tokens=F.pad(proposal.tokens, more),
        parents=torch.cat([proposal.parents, below.expand(len(proposal.parents), -1)], 1),
        valid=F.pad(proposal.valid, more),
        q_index=F.pad(index, more, value=-1),
    )


def _own_q(proposal: Proposal) -> Proposal:
    """Siblings drawn with replacement get a q each, so that none is taken out of another's."""
    if not proposal.replacement or proposal.q is None:
        return proposal
    assert proposal.q_index is not None
    rows = torch.arange(len(proposal.tokens), device=proposal.tokens.device)[:, None]
    nodes = torch.arange(proposal.size, device=proposal.tokens.device)
    index = torch.where(proposal.q_index < 0, -1, nodes)
    return replace(proposal, q=proposal.q[rows, proposal.q_index.clamp(min=0)], q_index=index)


def _merged_q(
    one: Proposal, two: Proposal, second_rows: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    if one.q is None and two.q is None:
        return None, None
    assert one.q_index is not None
    assert two.q_index is not None
    index = torch.where(second_rows[:, None], two.q_index, one.q_index)
    if one.q is None or two.q is None:
        return (two.q if one.q is None else one.q), index
    most = max(one.q.shape[1], two.q.shape[1])
    wide = [F.pad(q, (0, 0, 0, most - q.shape[1])) for q in (one.q, two.q)]
    return torch.where(second_rows[:, None, None], wide[1], wide[0]), index
