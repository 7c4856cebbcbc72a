"""Public heads run the slow way: whole sequences, no cache, from the tensors of the file alone.

What each format means is spelled out in a `Meaning`, never read from a config.json.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import silu

Table = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Meaning:
    """How to read a file's tensors. layer, fc: their prefixes. rope: frequencies [D/2]. first: the
    position of the first pair. ids [Vd]: the target's ids of the draft vocabulary."""

    rope: Tensor
    ids: Tensor
    layer: str = "midlayer"
    fc: str = "fc"
    version: int = 3
    head_dim: int = 8
    eps: float = 1e-5
    first: int = 0
    residual_normed: bool = False
    feed_normed: bool = False
    logits_normed: bool = True


def plain_rope(theta: float, head_dim: int = 8) -> Tensor:
    return torch.tensor([theta ** (-2 * i / head_dim) for i in range(head_dim // 2)]).double()


def llama3_rope(theta: float, factor: float, low: float, high: float, old: int) -> Tensor:
    """Llama 3.1: long waves are stretched, short ones kept, those between blended."""
    speeds = []
    for speed in plain_rope(theta).tolist():
        turns = old * speed / (2 * math.pi)
        blend = min(max((turns - low) / (high - low), 0.0), 1.0)
        speeds.append((1 - blend) * speed / factor + blend * speed)
    return torch.tensor(speeds).double()


class Slow:
    """A head's logits over the target's vocabulary, step by step."""

    def __init__(self, w: dict[str, Tensor], meaning: Meaning, embed: Table, lm_head: Table):
        self.w = {name: value.double() for name, value in w.items()}
        self.m, self.embed, self.lm_head = meaning, embed, lm_head

    def draft(self, ids: list[int], layers: list[Tensor], chain: list[int]) -> list[Tensor]:
        """Logits [V] after the tokens `ids` and after each token of `chain`; layers: the captured
        hidden states [T, H] of all `ids` but the last, which the target has not yet seen."""
        hidden = self._fuse(layers)
        tokens, found = ids[1:], []
        for token in [*chain, None]:
            output = self._layer(self.embed(torch.tensor(tokens)).double(), hidden)[-1:]
            found.append(self._logits(output)[0])
            fed = self._norm("norm", output) if self.m.feed_normed else output
            hidden = torch.cat([hidden, fed])
            tokens = [*tokens, token]
        return found

    def _fuse(self, layers: list[Tensor]) -> Tensor:
        if self.m.version == 1:
            return layers[0]
        if "fc_norm.0.weight" in self.w:
            layers = [self._norm(f"fc_norm.{i}", x) for i, x in enumerate(layers)]
        joined = torch.cat(layers, -1)
        if "input_norm.weight" in self.w:
            joined = self._norm("input_norm", joined)
        return self._linear(self.m.fc, joined)

    def _layer(self, embedding: Tensor, hidden: Tensor) -> Tensor:
        at = self.m.layer
        if self.m.version == 1:
            x = residual = self._linear(self.m.fc, torch.cat([embedding, hidden], -1))
        else:
            normed = self._norm(f"{at}.hidden_norm", hidden)
            x = torch.cat([self._norm(f"{at}.input_layernorm", embedding), normed], -1)
            residual = normed if self.m.residual_normed else hidden
        x = residual + self._attend(x)
        normed = self._norm(f"{at}.post_attention_layernorm", x)
        gate = silu(self._linear(f"{at}.mlp.gate_proj", normed))
        up = self._linear(f"{at}.mlp.up_proj", normed)
        return x + self._linear(f"{at}.mlp.down_proj", gate * up)

    def _attend(self, x: Tensor) -> Tensor:
        at = f"{self.m.layer}.self_attn"
        q, k, v = (
            self._linear(f"{at}.{n}_proj", x).unflatten(-1, (-1, self.m.head_dim)).transpose(0, 1)
            for n in "qkv"
        )
        if f"{at}.q_norm.weight" in self.w:
            q, k = self._norm(f"{at}.q_norm", q), self._norm(f"{at}.k_norm", k)
        q, k = self._turn(q), self._turn(k)
        k, v = (y.repeat_interleave(len(q) // len(k), 0) for y in (k, v))
        scores = q @ k.mT / self.m.head_dim**0.5
        future = torch.ones(scores.shape[-2:]).triu(1).bool()
        heads = scores.masked_fill(future, -torch.inf).softmax(-1) @ v
        return self._linear(f"{at}.o_proj", heads.transpose(0, 1).flatten(1))

    def _turn(self, x: Tensor) -> Tensor:
        angles = (self.m.first + torch.arange(x.shape[-2]))[:, None] * self.m.rope
        half = x.shape[-1] // 2
        turned = torch.view_as_complex(torch.stack([x[..., :half], x[..., half:]], -1).contiguous())
        turned = torch.view_as_real(turned * torch.polar(torch.ones_like(angles), angles))
        return torch.cat([turned[..., 0], turned[..., 1]], -1)

    def _logits(self, output: Tensor) -> Tensor:
        if self.m.version == 1:
            return self.lm_head(output)
        if self.m.logits_normed:
            output = self._norm("norm", output)
        full = torch.full((len(output), 96), -torch.inf, dtype=torch.float64)
        full[:, self.m.ids] = self._linear("lm_head", output)
        return full

    def _norm(self, name: str, x: Tensor) -> Tensor:
        scale = (x.square().mean(-1, keepdim=True) + self.m.eps).rsqrt()
        return x * scale * self.w[f"{name}.weight"]

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.w[f"{name}.weight"].T + self.w.get(f"{name}.bias", torch.zeros(()))
