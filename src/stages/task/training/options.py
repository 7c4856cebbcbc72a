"""Options of `task=train`."""

from dataclasses import asdict, dataclass, field

from draftmesh.registry import UserError

_FREE = ("resume", "folder", "cache", "checkpoint_every")
_PRECISIONS = ("no", "bf16", "fp16")


@dataclass(frozen=True)
class TrainOptions:
    """Where a training ends, how it steps and what head it makes.

    folder: keeps checkpoints, heads and metrics.jsonl; null is one per set of options under
    outputs/training.
    cache: keeps the target's features (2 * 4 * H bytes a token); null is beside the folder.
    resume: continue from the folder's checkpoint. epochs; minutes: end after that much wall time if
    it comes first, restarts included. batch_tokens: padded tokens in a batch, of which `accumulate`
    make a step. precision: no, bf16 or fp16. held_out: part of the chats that is only measured on.
    checkpoint_every: seconds. longest: tokens after which a chat is cut.
    version: 1 or 3. draft_vocab: tokens a version 3 head can draft. intermediate, kv_heads: the
    head's sizes; null is the target's feed-forward size and one key/value head per query head.
    steps: depth of the training-time test in each epoch; the last one holds for further epochs.
    decay: weight of each next step. regress: weight of the
    regression to the target's hidden state.
    """

    name: str = "train"
    folder: str | None = None
    cache: str | None = None
    resume: bool = True
    epochs: int = 3
    minutes: float | None = None
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    warmup: int = 50
    batch_tokens: int = 2048
    accumulate: int = 1
    precision: str = "bf16"
    held_out: float = 0.012
    checkpoint_every: float = 900.0
    longest: int = 2048
    version: int = 3
    draft_vocab: int = 8192
    intermediate: int | None = None
    kv_heads: int | None = None
    steps: list[int] = field(default_factory=lambda: [2, 3, 5])
    decay: float = 0.8
    regress: float = 0.0

    def check(self) -> None:
        """Raises UserError for values that cannot work."""
        for name in ("epochs", "batch_tokens", "accumulate", "warmup", "longest", "draft_vocab"):
            if getattr(self, name) < 1:
                raise UserError(f"task.{name}={getattr(self, name)}: must be at least 1")
        for name in ("learning_rate", "clip", "decay", "checkpoint_every"):
            if getattr(self, name) <= 0:
                raise UserError(f"task.{name}={getattr(self, name)}: must be above 0")
        if self.version not in (1, 3):
            raise UserError(f"task.version={self.version}: heads of version 1 or 3 can be trained")
        if not self.steps or min(self.steps) < 1:
            raise UserError(f"task.steps={self.steps}: needs numbers of at least 1")
        if not 0 < self.held_out < 1:
            raise UserError(f"task.held_out={self.held_out}: must be between 0 and 1")
        if self.precision not in _PRECISIONS:
            raise UserError(f"task.precision={self.precision}: choose {', '.join(_PRECISIONS)}")

    def identity(self) -> dict[str, object]:
        """What makes two trainings the same, so that one can continue the other."""
        return {key: value for key, value in asdict(self).items() if key not in _FREE}

    def overrides(self) -> list[str]:
        """The options that differ from their defaults, as on the command line."""
        usual = asdict(TrainOptions())
        changed = {k: v for k, v in self.identity().items() if v != usual[k]}
        return [f"task.{key}={value}".replace(" ", "") for key, value in changed.items()]
