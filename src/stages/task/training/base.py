"""What the recipes of all kinds share: the split, the cached features, measuring and the card."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from draftmesh.stages.draft.eagle.config import default_capture
from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.batches import Batch, load_batch, plan
from draftmesh.stages.task.training.card import Facts, write_card
from draftmesh.stages.task.training.corpus import split
from draftmesh.stages.task.training.features import FeatureStore
from draftmesh.stages.task.training.loop import Plan
from draftmesh.stages.task.training.material import Material
from draftmesh.stages.task.training.progress import Progress
from draftmesh.stages.task.training.vocabulary import frequent_tokens

DEPTH = 5
"""Draft positions that are usually measured."""


def cached_layers(layers: int) -> tuple[int, ...]:
    """The features that are cached unless a recipe needs others, so that kinds share one cache:
    EAGLE-3's three layers, and the final-normed state last."""
    return (*default_capture(3, layers), layers) if layers >= 3 else (layers,)


class HeadLoss(nn.Module, ABC):
    """The loss of a batch, `module(batch)`, and how a head is measured."""

    @abstractmethod
    def measure(self, batch: Batch, styles: Sequence[str], into: Acceptance) -> None:
        """Count how far greedy chains of `into.steps` tokens follow the texts; a style per row."""


class HeadRecipe(ABC):
    """A recipe for what trains on cached features. A subclass's constructor sets `head`, what is
    trained and saved, and `loss`."""

    kind: ClassVar[str]
    """The draft's registered name, and the node of its options."""

    head: nn.Module
    loss: HeadLoss
    depth: int = DEPTH
    """Draft positions whose acceptance is measured."""

    def __init__(self, material: Material, layers: Sequence[int] | None = None) -> None:
        """layers: the features to cache, the final-normed state last; None is the shared choice."""
        self.material, self.options = material, material.options
        self.checkpoint, self.target = material.checkpoint, material.target
        self.chats, self.seed = material.corpus.chats, material.seed
        self.train, held = split(self.chats, self.options.held_out, self.seed)
        self.held = [i for i in held if self.chats[i].greedy] or held
        self.store = FeatureStore(
            material.cache,
            self.chats,
            self.target,
            layers or cached_layers(self.target.num_layers),
            self.checkpoint.name,
        )
        self.lengths = [(len(chat.ids) - chat.prompt, len(chat.ids)) for chat in self.chats]
        torch.manual_seed(self.seed)

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Save the head in its public format, usable as draft.path."""

    @abstractmethod
    def describe(self) -> tuple[str, str]:
        """The card's title and what it says of the file, a sentence or two."""

    def frequent(self, size: int) -> Tensor:
        """The `size` most frequent answer tokens of the training chats, ascending ids; no more than
        the target has."""
        size = min(size, self.target.vocab_size)
        return frequent_tokens(self.chats, self.train, size, self.checkpoint.eos_ids)

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch."""
        return list(plan(self.lengths, self.train, self.options.batch_tokens, self.seed + number))

    def plan(self, accelerator: Accelerator) -> Plan[Batch]:
        """For the training loop."""

        def measure() -> dict[str, float]:
            with accelerator.autocast():
                return self.measure(accelerator.device)

        return Plan(
            self.loss,
            list(self.head.parameters()),
            self.epoch,
            lambda indices: load_batch(self.store, indices).to(accelerator.device),
            lambda indices: sum(self.lengths[i][0] for i in indices),
            measure,
            self.save,
            "val_acceptance_length",
        )

    def save(self, folder: Path, progress: Progress, metrics: dict[str, float]) -> None:
        """The head and its card."""
        folder.mkdir(parents=True, exist_ok=True)
        self.write(folder)
        title, text = self.describe()
        facts = Facts(
            title=title,
            text=text,
            kind=self.kind,
            corpus=self.material.corpus.name,
            chats=len(self.chats),
            answer_tokens=sum(answer for answer, _ in self.lengths),
            seen_tokens=progress.tokens,
            steps=progress.step,
            seconds=progress.seconds,
            options=self.options.overrides(self.kind),
            metrics=metrics,
        )
        write_card(folder, facts)

    def size(self) -> str:
        """The number of trained parameters, for the card."""
        return f"{sum(p.numel() for p in self.head.parameters()) / 1e6:.1f}M parameters"

    def measure(self, device: torch.device) -> dict[str, float]:
        """Greedy acceptance on held-out chats: per draft position, and the mean length by style."""
        acceptance = Acceptance(self.depth)
        for indices in plan(self.lengths, self.held, self.options.batch_tokens, 0):
            batch = load_batch(self.store, indices).to(device)
            self.loss.measure(batch, [self.chats[i].style for i in indices], acceptance)
        metrics = {f"val_accept_{j + 1}": rate for j, rate in enumerate(acceptance.rates())}
        for style in acceptance.total:
            key = "val_acceptance_length" + ("" if style == "all" else f"_{style}")
            metrics[key] = acceptance.length(style)
        return metrics
