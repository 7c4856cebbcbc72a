"""What a training is made from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from draftmesh.registry import UserError
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.task.training.corpus import Corpus
from draftmesh.stages.task.training.options import TrainOptions

T = TypeVar("T")


@dataclass(frozen=True)
class Material:
    """The target, the chats, the folder that caches the target's features, and the options."""

    checkpoint: Checkpoint
    target: Target
    corpus: Corpus
    cache: Path
    options: TrainOptions
    seed: int

    def started(self, load: Callable[[Path, Target], T]) -> T | None:
        """What `task.start` names, through the loader of its kind of draft; None without it.

        Raises the loader's UserError, naming task.start, for another kind or shape.
        """
        start = self.options.start
        if start is None:
            return None
        folder = Path(start).expanduser()
        if not folder.is_dir():
            raise UserError(f"task.start={start}: no such folder")
        try:
            return load(folder, self.target)
        except UserError as error:
            raise UserError(str(error).replace("draft.path", "task.start")) from None
