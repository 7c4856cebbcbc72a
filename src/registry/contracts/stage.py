"""What is handed to a stage when it is built. A stage's class takes its frozen Config first."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from draftmesh.registry.contracts.ranks import Ranks
from draftmesh.registry.contracts.sampling import Sampler
from draftmesh.registry.contracts.target import Target


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model: the Hugging Face module, its tokenizer, every EOS id, where it came from.

    `name` is what results and head lookups call it (for example "smollm2"); `path` is the local
    folder, None for random weights. `tokenizer` is None for models without one.
    """

    name: str
    path: Path | None
    model: Any
    tokenizer: Any
    eos_ids: tuple[int, ...]


class Model(Protocol):
    """A model stage (kind `model`): `Stage(config).load()`."""

    def load(self) -> Checkpoint:
        """The model, ready to decode."""
        ...


@dataclass(frozen=True)
class Prompt:
    """One line of a prompt file: the user's turns, in order.

    `history` holds the (role, content) messages before the first turn: a system message, or earlier
    turns with the answers they got.
    """

    id: str
    turns: tuple[str, ...]
    category: str | None = None
    max_new_tokens: int | None = None
    history: tuple[tuple[str, str], ...] = ()


class Data(Protocol):
    """A data stage (kind `data`): `Stage(config).load()`."""

    def load(self) -> list[Prompt]:
        """The prompts, in order."""
        ...


@dataclass(frozen=True)
class DraftContext:
    """What a draft (kind `draft`) is built with: `Stage(config, context)`.

    `coupled` says that the verifier is `match`, so a sampling draft may draw with the target's own
    noise (Stream.TARGET at the same position): agreement becomes likely, the output stays the same.
    `automatic` says that `k` was not asked for (draft.k=auto) but is the most that makes sense: a
    draft that can't go as deep is built less deep.
    """

    target: Target
    checkpoint: Checkpoint
    sampler: Sampler
    ranks: Ranks
    coupled: bool = False
    automatic: bool = False
