"""Options of `task=train draft=medusa`, the node task.medusa."""

from dataclasses import dataclass

from draftmesh.registry import UserError


@dataclass(frozen=True)
class MedusaOptions:
    """heads: tokens guessed ahead. layers: residual blocks of each. draft_vocab: the tokens they
    can draft. own_lm_head: each head trains an LM head of its own, which the file then holds (v1);
    otherwise they share the target's. With task.start, the heads there decide all of it."""

    heads: int = 4
    layers: int = 1
    draft_vocab: int = 8192
    own_lm_head: bool = False

    def check(self) -> None:
        """Raises UserError for values that cannot work."""
        for name in ("heads", "layers", "draft_vocab"):
            if getattr(self, name) < 1:
                raise UserError(f"task.medusa.{name}={getattr(self, name)}: must be at least 1")
