"""Finding a model's experts, and how many parameters a token meets."""

from dataclasses import dataclass
from typing import Any

from draftmesh.registry import UserError

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
CHOSEN = ("num_experts_per_tok", "top_k_experts")
"""Names in configurations: how many experts there are, and how many of them a token gets."""


def expert_modules(model: Any) -> list[Any]:
    """Modules that follow transformers' experts conventions, in layer order.

    Raises UserError for experts whose outputs pass a norm of their own before they are weighted.
    """
    found = [
        module
        for module in model.modules()
        if all(hasattr(module, name) for name in ("has_gate", "is_transposed", "down_proj"))
    ]
    if any(getattr(module, "has_post_expert_norm", False) for module in found):
        raise UserError(f"ffn: experts of {type(model).__name__} are not supported")
    return found


def has_experts(model: Any) -> bool:
    """Whether the checkpoint's configuration speaks of experts, however they are implemented."""
    config = model.config.get_text_config()
    return any((getattr(config, name, None) or 0) > 1 for name in EXPERTS)


def check_ranks(ep: int, experts: int) -> None:
    """Raises UserError if a model's own experts do not give every rank one."""
    if ep > experts:
        raise UserError(
            f"parallel.ep={ep}: the model has only {experts} experts; lower parallel.ep"
        )


def check_copies(ep: int, copies: int) -> None:
    """Raises UserError if the copies that a dense block becomes do not."""
    if ep > copies:
        raise UserError(f"parallel.ep={ep} ranks but ffn.experts={copies}: raise ffn.experts")


@dataclass(frozen=True)
class Parameters:
    """`total` parameters of the model, and `active` ones, that one token's forward uses."""

    total: int
    active: int


def count_parameters(model: Any, top_k: int | None = None) -> Parameters:
    """Count before anything is split. `top_k` defaults to the configuration's experts per token."""
    total = sum(p.numel() for p in model.parameters())
    config = model.config.get_text_config()
    k = top_k or next((n for name in CHOSEN if (n := getattr(config, name, None))), 1)
    idle = 0
    for module in expert_modules(model):
        experts = int(module.down_proj.shape[0])
        held = sum(p.numel() for p in module.parameters())
        idle += held - held * min(k, experts) // experts
    return Parameters(total, total - idle)
