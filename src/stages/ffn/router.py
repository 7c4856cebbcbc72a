"""The router of an upcycled block."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FREQUENCY = 3.0


class CopyRouter(nn.Module):
    """Top-k of cosines of random projections, in float32, with renormalised weights.

    Hidden states of a language model share a large mean, so that linear scores would send most
    tokens to the same few experts; cosines spread them (random Fourier features). `inputs` [T, H]
    are sample inputs of the block that set the scale. With k = 1 the weight is exactly 1.
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
        weight = FREQUENCY * weight.to(sample.device) / spread / sample.shape[1] ** 0.5
        self.register_buffer("weight", weight)
        self.register_buffer("bias", -(weight @ sample.mean(0)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, H] -> expert ids [T, k] int64, weights [T, k] float32."""
        scores = F.linear(x.float(), self.weight, self.bias).cos()
        values, ids = scores.topk(self.top_k)
        return ids, values.softmax(-1)
