"""Options of `task=train draft=small`, the node task.small."""

from dataclasses import dataclass

from draftmesh.registry import UserError


@dataclass(frozen=True)
class SmallOptions:
    """layers: of the small model. draft_vocab: the tokens it can draft. regress: weight of the
    regression to the target's final hidden state. With task.start, the model there decides layers
    and draft_vocab."""

    layers: int = 2
    draft_vocab: int = 8192
    regress: float = 0.0

    def check(self) -> None:
        """Raises UserError for values that cannot work."""
        for name in ("layers", "draft_vocab"):
            if getattr(self, name) < 1:
                raise UserError(f"task.small.{name}={getattr(self, name)}: must be at least 1")
