"""A dense model turned into a mixture of experts by copying its feed-forward blocks."""

from typing import Any

import torch
from torch import Tensor, nn

from draftmesh.registry import UserError
from draftmesh.stages.ffn.moe import experts_forward
from draftmesh.stages.ffn.router import CopyRouter
from draftmesh.stages.parallel.plain import plain_forward, sample_tokens

PARTS = ("gate_proj", "up_proj", "down_proj")
SAMPLE_TOKENS = 64


class CopiedExperts(nn.Module):
    """Copies of one gated MLP, laid out by transformers' experts conventions.

    gate_up_proj [E, 2I, H] and down_proj [E, H, I] share one storage until `shard_experts` keeps
    this rank's copies.
    """

    has_gate = True
    is_transposed = False
    is_concatenated = True
    has_post_expert_norm = False

    def __init__(self, mlp: Any, experts: int) -> None:
        super().__init__()
        self.num_experts = experts
        self.act_fn = mlp.act_fn
        self.has_bias = mlp.down_proj.bias is not None
        pairs = [("gate_up_proj", _joined(mlp, "weight")), ("down_proj", mlp.down_proj.weight)]
        if self.has_bias:
            pairs += [("gate_up_proj_bias", _joined(mlp, "bias"))]
            pairs += [("down_proj_bias", mlp.down_proj.bias)]
        for name, weight in pairs:
            shared = weight.detach().expand(experts, *weight.shape)
            self.register_parameter(name, nn.Parameter(shared, requires_grad=False))

    def _apply_gate(self, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, -1)
        out: Tensor = self.act_fn(gate) * up
        return out

    def forward(self, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        """x [T, H], ids and weights [T, k] -> [T, H]."""
        return experts_forward(self, x, ids, weights)


class CopiedBlock(nn.Module):
    """Router and experts in place of a dense MLP: [..., H] -> [..., H]."""

    def __init__(self, router: CopyRouter, experts: CopiedExperts) -> None:
        super().__init__()
        self.gate = router
        self.experts = experts

    def forward(self, x: Tensor) -> Tensor:
        """The weighted sum of the chosen experts' outputs."""
        flat = x.reshape(-1, x.shape[-1])
        ids, weights = self.gate(flat)
        out: Tensor = self.experts(flat, ids, weights)
        return out.reshape(x.shape)


def dense_blocks(model: Any) -> list[tuple[nn.Module, str, nn.Module]]:
    """(parent, name, block) of each gated MLP directly in a decoder layer, in order."""
    return [
        (layer, name, block)
        for layer in model.get_decoder().modules()
        if hasattr(layer, "self_attn")
        for name, block in layer.named_children()
        if all(isinstance(getattr(block, part, None), nn.Linear) for part in PARTS)
        and hasattr(block, "act_fn")
    ]


@torch.no_grad()
def upcycle(model: Any, experts: int, top_k: int, seed: int) -> int:
    """Replace every dense MLP by `experts` copies of it behind a router, in place.

    Routers are drawn from `seed` and fitted to the inputs that the blocks see on random tokens.
    Returns the number of blocks. Raises UserError if the model has none that can be copied.
    """
    blocks = dense_blocks(model)
    if not blocks:
        raise UserError(
            f"ffn=moe: {type(model).__name__} has no gated feed-forward blocks (gate_proj, up_proj "
            "and down_proj) to copy: choose another model or ffn=dense"
        )
    samples = _inputs(model, [block for _, _, block in blocks])
    for number, ((parent, name, block), sample) in enumerate(zip(blocks, samples, strict=True)):
        router = CopyRouter(sample, experts, top_k, seed + number)
        setattr(parent, name, CopiedBlock(router, CopiedExperts(block, experts)))
    return len(blocks)


def _inputs(model: Any, blocks: list[nn.Module]) -> list[Tensor]:
    seen: dict[int, Tensor] = {}

    def keep(number: int, args: tuple[Any, ...]) -> None:
        seen[number] = args[0].reshape(-1, args[0].shape[-1])

    hooks = [
        block.register_forward_pre_hook(lambda _, args, at=number: keep(at, args))
        for number, block in enumerate(blocks)
    ]
    try:
        plain_forward(model, sample_tokens(model, SAMPLE_TOKENS))
    finally:
        for hook in hooks:
            hook.remove()
    return [seen[number] for number in range(len(blocks))]


def _joined(mlp: Any, what: str) -> Tensor:
    return torch.cat([getattr(mlp.gate_proj, what), getattr(mlp.up_proj, what)])
