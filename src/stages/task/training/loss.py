"""Cross-entropy to the target's own distribution, over the draft vocabulary, in pieces."""

from typing import Any

import torch
from torch import Tensor

PIECE = 128


def soft_cross_entropy(
    hidden: Tensor, weight: Tensor, teacher: Tensor, rows: Tensor, scale: Tensor
) -> Tensor:
    """SoftCrossEntropy in autocast's dtype, if it is on."""
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        hidden = hidden.to(torch.get_autocast_dtype(kind))
    loss: Tensor = SoftCrossEntropy.apply(hidden, weight, teacher, rows, scale)
    return loss


class SoftCrossEntropy(torch.autograd.Function):
    """sum_k,m scale[k, m] * CE(softmax(teacher[m] @ rows.T), hidden[k, m] @ weight.T).

    hidden [K, M, H] holds K predictions of the same M tokens, so the target's distribution is
    computed once for all of them. Logits live for PIECE tokens at a time: their gradient is
    computed on the way, which a linear layer and `cross_entropy` would keep for M * K * V. A weight
    that needs no gradient costs none.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, teacher: Tensor, rows: Tensor, scale: Tensor
    ) -> Tensor:
        """weight [V, H], teacher [M, H], rows [V, H], scale [K, M] -> a scalar."""
        dtype, steps = hidden.dtype, hidden.shape[0]
        out, rows = weight.to(dtype), rows.to(dtype)
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        by_hidden = torch.empty_like(hidden)
        by_weight = None
        if weight.requires_grad:
            by_weight = torch.zeros(weight.shape[::-1], dtype=weight.dtype, device=weight.device)
        for start in range(0, teacher.shape[0], PIECE):
            span = slice(start, start + PIECE)
            goal = (teacher[span].to(dtype) @ rows.T).softmax(-1, dtype=torch.float32)
            piece = hidden[:, span].flatten(0, 1)
            weights = scale[:, span].reshape(-1, 1)
            log = (piece @ out.T).log_softmax(-1, dtype=torch.float32).unflatten(0, (steps, -1))
            loss = (goal * log).sum(-1)
            total -= (loss * scale[:, span]).sum()
            gradient = log.exp_().sub_(goal).to(dtype).flatten(0, 1)
            by_hidden[:, span] = ((gradient @ out) * weights).to(dtype).unflatten(0, (steps, -1))
            if by_weight is not None:
                by_weight += (piece * weights).to(dtype).T @ gradient
        ctx.save_for_backward(by_hidden, None if by_weight is None else by_weight.T)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients computed on the way."""
        by_hidden, by_weight = ctx.saved_tensors
        weighted = None if by_weight is None else by_weight * gradients[0]
        return by_hidden * gradients[0], weighted, None, None, None
