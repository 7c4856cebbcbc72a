"""Options of `task=train draft=self`, the node task.self."""

from dataclasses import dataclass

from draftmesh.registry import UserError


@dataclass(frozen=True)
class SelfOptions:
    """exit_layer: layers that run before the adapter; null is a third of them. blocks: its residual
    blocks; intermediate: their width, null is the target's. draft_vocab: the tokens it can draft.
    regress: weight of the regression to the target's final hidden state. With task.start, the
    adapter there decides all but regress."""

    exit_layer: int | None = None
    blocks: int = 2
    intermediate: int | None = None
    draft_vocab: int = 8192
    regress: float = 0.0

    def check(self) -> None:
        """Raises UserError for values that cannot work."""
        for name in ("blocks", "draft_vocab", "intermediate"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"task.self.{name}={value}: must be at least 1")
