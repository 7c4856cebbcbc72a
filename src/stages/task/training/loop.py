"""The training loop, on accelerate: the same for every kind of head."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import torch
from accelerate import Accelerator
from torch import nn

from draftmesh.stages.task.training.progress import Progress

B = TypeVar("B")


@dataclass(frozen=True)
class Plan(Generic[B]):
    """What the loop runs.

    module(batch) is the loss; `parameters` are what it trains. `epoch(n)` gives the n-th epoch's
    batches as lists of corpus indices, `load` reads one, `size` counts its training tokens.
    `measure` returns validation metrics, of which `score` is to be maximised; `save` writes the
    head to a folder, with what the progress and the metrics say of it.
    """

    module: nn.Module
    parameters: Sequence[nn.Parameter]
    epoch: Callable[[int], list[list[int]]]
    load: Callable[[list[int]], B]
    size: Callable[[list[int]], int]
    measure: Callable[[], dict[str, float]]
    save: Callable[[Path, Progress, dict[str, float]], None]
    score: str


@dataclass(frozen=True)
class Knobs:
    """The loop's numbers; `checkpoint_every` is in seconds, `warmup` in optimizer steps."""

    learning_rate: float
    weight_decay: float
    clip: float
    warmup: int
    checkpoint_every: float


def optimizer_for(parameters: Sequence[nn.Parameter], knobs: Knobs) -> torch.optim.AdamW:
    """AdamW (0.9, 0.95); no weight decay on vectors."""
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": knobs.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=knobs.learning_rate, betas=(0.9, 0.95), fused=True)


class Trainer(Generic[B]):
    """Runs a plan to its end, continuing from the last checkpoint in `folder` if there is one.

    `report(metrics, step)` gets the metrics; `tick(progress, loss)` is called after every step.
    Only the main process writes. The folder ends up with `last/` and `best/` heads and one
    `checkpoint/`.
    """

    def __init__(
        self,
        plan: Plan[B],
        knobs: Knobs,
        progress: Progress,
        accelerator: Accelerator,
        folder: Path,
        report: Callable[[dict[str, float], int], None],
        tick: Callable[[Progress, float], None],
    ) -> None:
        self.plan, self.knobs, self.progress = plan, knobs, progress
        self.accelerator, self.folder, self.report, self.tick = accelerator, folder, report, tick
        optimizer = optimizer_for(plan.parameters, knobs)
        self.module, self.optimizer = accelerator.prepare(plan.module, optimizer)
        accelerator.register_for_checkpointing(progress)

    def resume(self) -> bool:
        """Load the checkpoint, if any."""
        checkpoint = self.folder / "checkpoint"
        old = self.folder / "checkpoint.old"
        if not checkpoint.exists() and old.exists() and self.accelerator.is_main_process:
            old.rename(checkpoint)
        self.accelerator.wait_for_everyone()
        if not checkpoint.exists():
            return False
        self.accelerator.load_state(str(checkpoint))
        return True

    def run(self) -> None:
        """Train to the end of the plan."""
        saved = reported = time.monotonic()
        while self.progress.fraction < 1:
            for loss in self._epoch():
                self.tick(self.progress, loss)
                now = time.monotonic()
                if self._due(now - reported > 10):
                    self.report(self._state(loss), self.progress.step)
                    reported = now
                # Between two batches of one step, gradients would be lost.
                if self.accelerator.sync_gradients and self._due(
                    now - saved > self.knobs.checkpoint_every
                ):
                    self.checkpoint()
                    saved = time.monotonic()
                if self._due(self.progress.fraction >= 1):
                    break
            else:
                self.progress.epoch, self.progress.batch = self.progress.epoch + 1, 0
        self.checkpoint()

    def _due(self, local: bool) -> bool:
        """The main process decides, so that all take part in the same collectives."""
        if self.accelerator.num_processes == 1:
            return local
        flag = torch.tensor([int(local and self.accelerator.is_main_process)])
        return bool(self.accelerator.reduce(flag.to(self.accelerator.device)).item())

    def _epoch(self) -> Iterator[float]:
        world = self.accelerator.num_processes
        batches = self.plan.epoch(self.progress.epoch)
        rounds = len(batches) // world
        for number in range(self.progress.batch, rounds):
            indices = batches[number * world + self.accelerator.process_index]
            loss = self._step(self.plan.load(indices))
            self.progress.batch = number + 1
            self.progress.tokens += world * self.plan.size(indices)
            yield loss

    def _step(self, batch: B) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.progress.rate(self.knobs.learning_rate, self.knobs.warmup)
        with self.accelerator.accumulate(self.module):
            loss = self.module(batch)
            self.accelerator.backward(loss)
            if self.accelerator.sync_gradients:
                self.accelerator.clip_grad_norm_(self.plan.parameters, self.knobs.clip)
                self.progress.step += 1
            self.optimizer.step()
            self.optimizer.zero_grad()
        return float(loss.detach())

    def _state(self, loss: float) -> dict[str, float]:
        return {
            "train_loss": loss,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "train_tokens": float(self.progress.tokens),
            "train_seconds": self.progress.seconds,
            "epoch": self.progress.epoch + self.progress.batch / max(1, self.progress.batches),
        }

    def checkpoint(self) -> None:
        """Validate, then write `last/`, `best/` when it improved, and the state to resume from."""
        if self.accelerator.is_main_process:
            self.module.eval()
            metrics = self.plan.measure()
            self.module.train()
            self.report(metrics, self.progress.step)
            self._write("last", metrics)
            if metrics[self.plan.score] > self.progress.best:
                self.progress.best = metrics[self.plan.score]
                self._write("best", metrics)
        self.accelerator.wait_for_everyone()
        part = self.folder / "checkpoint.part"
        self.accelerator.save_state(str(part))
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            self._swap(part, self.folder / "checkpoint")
        self.accelerator.wait_for_everyone()

    def _write(self, name: str, metrics: dict[str, float]) -> None:
        part = self.folder / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        self.plan.save(part, self.progress, metrics)
        self._swap(part, self.folder / name)

    @staticmethod
    def _swap(part: Path, place: Path) -> None:
        """Put a complete folder in place; a crash in between leaves the old or the new one."""
        old = place.with_name(place.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if place.exists():
            place.rename(old)
        part.rename(place)
        shutil.rmtree(old, ignore_errors=True)
