"""Options of `task=train draft=eagle`, the node task.eagle."""

from dataclasses import dataclass, field

from draftmesh.registry import UserError


@dataclass(frozen=True)
class EagleOptions:
    """The head and its losses.

    version: 1 or 3. draft_vocab: tokens a version 3 head can draft. intermediate, kv_heads: the
    head's sizes; null is the target's feed-forward size and one key/value head per query head.
    steps: depth of the training-time test in each epoch; the last one holds for further epochs.
    regress: weight of the regression to the target's hidden state.
    With task.start, the head there decides draft_vocab, intermediate and kv_heads.
    """

    version: int = 3
    draft_vocab: int = 8192
    intermediate: int | None = None
    kv_heads: int | None = None
    steps: list[int] = field(default_factory=lambda: [2, 3, 5])
    regress: float = 0.0

    def check(self) -> None:
        """Raises UserError for values that cannot work."""
        if self.version not in (1, 3):
            raise UserError(
                f"task.eagle.version={self.version}: heads of version 1 or 3 can be trained"
            )
        if self.draft_vocab < 1:
            raise UserError(f"task.eagle.draft_vocab={self.draft_vocab}: must be at least 1")
        if not self.steps or min(self.steps) < 1:
            raise UserError(f"task.eagle.steps={self.steps}: needs numbers of at least 1")
