"""The router of an upcycled block."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CopyRouter(nn.Module):
    """Random projections of standardised inputs, in float32; top-k with renormalised weights.

    `inputs` [T, H] are sample inputs of the block: hidden states of a language model share a large
    mean, and without removing it nearly every token would choose the same expert.
    With k = 1 the weight is exactly 1.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, inputs: Tensor, experts: int, top_k: int, seed: int) -> None:
        super().__init__()
        self.top_k = top_k
        sample = inputs.float()
        spread = sample.std(0).clamp_min(1e-6)
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(experts, sample.shape[1], generator=generator)
        weight = weight.to(sample.device) / spread / sample.shape[1] ** 0.5
        self.register_buffer("weight", weight)
        self.register_buffer("bias", -(weight @ sample.mean(0)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, H] -> expert ids [T, k] int64, weights [T, k] float32."""
        values, ids = F.linear(x.float(), self.weight, self.bias).topk(self.top_k)
        return ids, values.softmax(-1)
