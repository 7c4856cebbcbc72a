"""Options of `task=train`."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from draftmesh.registry import UserError
from draftmesh.stages.task.training.eagle.options import EagleOptions
from draftmesh.stages.task.training.medusa.options import MedusaOptions
from draftmesh.stages.task.training.self.options import SelfOptions
from draftmesh.stages.task.training.small.options import SmallOptions

_FREE = ("resume", "folder", "cache", "checkpoint_every")
_PRECISIONS = ("no", "bf16", "fp16")


@dataclass(frozen=True)
class TrainOptions:
    """Where a training ends and how it steps; what belongs to one kind of draft is in its node.

    start: a trained draft of the same kind to go on from; null starts from the target's weights.
    folder: keeps checkpoints, heads and metrics.jsonl; null is one per set of options under
    outputs/training.
    cache: keeps the target's features (2 * 4 * H bytes a token); null is beside the folder.
    resume: continue from the folder's checkpoint. epochs; minutes: end after that much wall time if
    it comes first, restarts included. batch_tokens: padded tokens in a batch, of which `accumulate`
    make a step. precision: no, bf16 or fp16. held_out: part of the chats that is only measured on.
    checkpoint_every: seconds. longest: tokens after which a chat is cut.
    decay: weight of each next draft position, for drafts that train several.
    """

    name: str = "train"
    start: str | None = None
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
    decay: float = 0.8
    eagle: EagleOptions = field(default_factory=EagleOptions)
    medusa: MedusaOptions = field(default_factory=MedusaOptions)
    small: SmallOptions = field(default_factory=SmallOptions)
    self: SelfOptions = field(default_factory=SelfOptions)

    def check(self, kind: str) -> None:
        """Raises UserError for values that cannot work for a kind of draft."""
        for name in ("epochs", "batch_tokens", "accumulate", "warmup", "longest"):
            if getattr(self, name) < 1:
                raise UserError(f"task.{name}={getattr(self, name)}: must be at least 1")
        for name in ("learning_rate", "clip", "decay", "checkpoint_every"):
            if getattr(self, name) <= 0:
                raise UserError(f"task.{name}={getattr(self, name)}: must be above 0")
        if not 0 < self.held_out < 1:
            raise UserError(f"task.held_out={self.held_out}: must be between 0 and 1")
        if self.precision not in _PRECISIONS:
            raise UserError(f"task.precision={self.precision}: choose {', '.join(_PRECISIONS)}")
        getattr(self, kind).check()

    def identity(self, kind: str) -> dict[str, Any]:
        """What makes two trainings of a kind the same, so that one can continue the other."""
        return {
            key: value
            for key, value in asdict(self).items()
            if key not in _FREE and (key == kind or not isinstance(value, dict))
        }

    def overrides(self, kind: str) -> list[str]:
        """The options of a kind that differ from their defaults, as on the command line.

        Of `start` only the folder's name is told.
        """
        own, usual = _flat(self.identity(kind)), _flat(asdict(TrainOptions()))
        changed = {k: v for k, v in own.items() if v != usual[k]}
        if self.start is not None:
            changed["start"] = Path(self.start).name
        return [f"task.{key}={value}".replace(" ", "") for key, value in changed.items()]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
