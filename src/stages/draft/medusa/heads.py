"""Medusa's heads, all of them run at once."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class MedusaHeads(nn.Module):
    """K heads on the target's last hidden state, behind its final norm (Cai et al., "Medusa",
    arXiv 2401.10774). Head h guesses the (h + 1)-th token after the one that the target's own LM
    head has chosen there.

    weight [L, K, H, H] and bias [L, K, H] are the residual blocks x + SiLU(W x + b), L one after
    another. lm_heads [K, Vd, H], or [1, Vd, H] for one that all heads share, turns their outputs
    into logits; None stands for the target's. token_map [Vd] holds the target's ids that logits are
    for; None is all of its `vocab` tokens.
    """

    token_map: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        lm_heads: Tensor | None,
        token_map: Tensor | None,
        vocab: int,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)
        self.lm_heads = None if lm_heads is None else nn.Parameter(lm_heads)
        self.register_buffer("token_map", token_map)
        self.layers, self.count, self.hidden = weight.shape[:3]
        self.vocab = vocab

    @staticmethod
    def fresh(
        heads: int, layers: int, hidden: int, vocab: int, token_map: Tensor | None
    ) -> "MedusaHeads":
        """Heads that hand the hidden state on, with the target's LM head: blocks of zeros."""
        weight = torch.zeros(layers, heads, hidden, hidden)
        return MedusaHeads(weight, torch.zeros(layers, heads, hidden), None, token_map, vocab)

    @property
    def draft_vocab(self) -> int:
        """Vd."""
        return self.vocab if self.token_map is None else len(self.token_map)

    def states(self, hidden: Tensor, count: int) -> Tensor:
        """hidden [M, H] -> the outputs [count, M, H] of the first `count` heads' blocks."""
        x = hidden.expand(count, -1, -1)
        for layer in range(self.layers):
            turned = self.weight[layer, :count].mT
            if self.bias is None:
                x = x + functional.silu(x @ turned)
            else:
                x = x + functional.silu(torch.baddbmm(self.bias[layer, :count, None], x, turned))
        return x

    def logits(self, states: Tensor) -> Tensor:
        """states [K', M, H] of the first K' heads -> [K', M, Vd], by LM heads of their own."""
        assert self.lm_heads is not None
        if len(self.lm_heads) == 1:
            return functional.linear(states, self.lm_heads[0])
        return states @ self.lm_heads[: len(states)].mT
