"""The `ffn` stages: how a model's feed-forward blocks are executed."""

from dataclasses import dataclass
from typing import Any

from draftmesh.registry import UserError, register
from draftmesh.stages.ffn.assemble import assemble
from draftmesh.stages.ffn.experts import (
    Parameters,
    check_copies,
    count_parameters,
    expert_modules,
    has_experts,
)
from draftmesh.stages.ffn.moe import MoE
from draftmesh.stages.ffn.upcycle import upcycle
from draftmesh.stages.parallel.ranks import Mesh


@dataclass(frozen=True)
class FeedForward:
    """What became of the blocks: `kind` dense or moe, the running experts if there are any, the
    parameter counts before splitting, and lines to tell the user."""

    kind: str
    moe: MoE | None
    parameters: Parameters
    notes: tuple[str, ...] = ()


@register("ffn", "auto")
class Auto:
    """As the checkpoint says; a dense model under an expert-parallel plan is upcycled."""

    @dataclass(frozen=True)
    class Config:
        """Options of an upcycled model: number of copies, experts per token, the routers' seed, and
        whether the copies share one storage (less memory, but then moving weights costs less than
        it would for real experts)."""

        name: str = "auto"
        experts: int = 8
        top_k: int = 1
        seed: int = 0
        share_weights: bool = False

    def __init__(self, config: Config) -> None:
        self.config = config
        if config.experts < 1:
            raise UserError(f"ffn.experts={config.experts}: must be at least 1")
        if not 1 <= config.top_k <= config.experts:
            raise UserError(
                f"ffn.top_k={config.top_k}: must be from 1 to ffn.experts={config.experts}"
            )

    def upcycles(self, model: Any, mesh: Mesh) -> bool:
        """Whether `apply` will replace dense blocks by experts."""
        return mesh.ep > 1 and not has_experts(model)

    def apply(self, model: Any, mesh: Mesh) -> FeedForward:
        """Change the model in place; called by every rank, before its tensors are split."""
        if self.upcycles(model, mesh):
            return self._upcycled(model, mesh)
        if has_experts(model):
            return self._attach(model, mesh, None)
        return FeedForward("dense", None, count_parameters(model))

    def _upcycled(self, model: Any, mesh: Mesh) -> FeedForward:
        c = self.config
        check_copies(mesh.ep, c.experts)
        blocks = upcycle(model, c.experts, c.top_k, c.seed)
        note = (
            f"ffn={c.name}: the dense model became {blocks} blocks of {c.experts} equal experts, "
            f"top-{c.top_k} (ffn.experts, ffn.top_k)"
        )
        return self._attach(model, mesh, c.top_k, note)

    def _attach(self, model: Any, mesh: Mesh, top_k: int | None, *notes: str) -> FeedForward:
        parameters = count_parameters(model, top_k)
        modules = expert_modules(model)
        if not modules:
            if mesh.world > 1:
                raise UserError(
                    f"parallel: the experts of {type(model).__name__} do not use transformers' "
                    "experts interface and cannot be split: use parallel=single"
                )
            return FeedForward("moe", None, parameters)
        shared = self.config.share_weights and top_k is not None
        return FeedForward("moe", assemble(model, modules, mesh, shared), parameters, notes)


@register("ffn", "dense")
class Dense:
    """Dense feed-forward blocks, as a dense checkpoint has them."""

    @dataclass(frozen=True)
    class Config:
        """No options."""

        name: str = "dense"

    def __init__(self, config: Config) -> None:
        self.config = config

    def upcycles(self, model: Any, mesh: Mesh) -> bool:
        """Never."""
        return False

    def apply(self, model: Any, mesh: Mesh) -> FeedForward:
        """Leave the model as it is."""
        if has_experts(model):
            raise UserError(f"ffn=dense: {type(model).__name__} has experts: use ffn=auto")
        if mesh.ep > 1:
            raise UserError(f"ffn=dense has no experts for parallel.ep={mesh.ep}: use ffn=moe")
        return FeedForward("dense", None, count_parameters(model))


@register("ffn", "moe")
class Moe(Auto):
    """A mixture of experts; a dense model is upcycled by copying its feed-forward blocks."""

    @dataclass(frozen=True)
    class Config(Auto.Config):
        """As for ffn=auto."""

        name: str = "moe"

    def upcycles(self, model: Any, mesh: Mesh) -> bool:
        """Whether `apply` will replace dense blocks by experts."""
        return not has_experts(model)
