"""`task=train`: train a draft head for the configured model."""

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from draftmesh.registry import UserError, register
from draftmesh.stages.task.training.corpus import load_corpus
from draftmesh.stages.task.training.loop import Knobs, Trainer
from draftmesh.stages.task.training.progress import Progress as State
from draftmesh.stages.task.training.recipe import EagleRecipe, Shape


@register("task", "train")
class Train:
    """Train a draft head on chats, resumable; writes it in its public layout."""

    @dataclass(frozen=True)
    class Config:
        """Options of `task=train`.

        The training ends after `epochs`, or `minutes` of wall time (restarts included) if set and
        reached first; `batch_tokens` padded tokens make a batch, `accumulate` batches a step.
        `steps` is the depth of the training-time test, `decay` the weight of each next step,
        `regress` the weight of the regression to the target's hidden state. `folder` keeps the
        checkpoints (default: one per set of options under outputs/training), `cache` the target's
        features. `precision` is no, bf16 or fp16.
        """

        name: str = "train"
        folder: str | None = None
        cache: str | None = None
        resume: bool = True
        epochs: int = 5
        minutes: float | None = None
        learning_rate: float = 1e-3
        weight_decay: float = 0.01
        clip: float = 1.0
        warmup: int = 100
        batch_tokens: int = 2048
        accumulate: int = 1
        precision: str = "bf16"
        held_out: float = 0.03
        checkpoint_every: float = 600.0
        longest: int = 2048
        version: int = 3
        draft_vocab: int = 8192
        intermediate: int | None = None
        kv_heads: int | None = None
        steps: int = 5
        decay: float = 0.8
        regress: float = 0.0

    def __init__(self, config: Config) -> None:
        self.config = config

    def _folder(self, model: str, draft: str) -> Path:
        if self.config.folder:
            return Path(self.config.folder)
        options = {k: v for k, v in asdict(self.config).items() if k not in ("resume", "cache")}
        digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:8]
        return Path("outputs") / "training" / f"{model}-{draft}-{digest}"

    def run(self, pipeline: Any) -> dict[str, Any]:
        """Train; returns the last validation metrics and the folder of the best head."""
        config, checkpoint = self.config, pipeline.checkpoint
        draft = pipeline.cfg["draft"]["name"]
        if draft != "eagle":
            raise UserError(f"task=train cannot train draft={draft}; choose draft=eagle")
        source = pipeline.cfg["data"].get("path")
        if not source:
            raise UserError("task=train needs data.path=<jsonl of chats>")
        accelerator = Accelerator(
            mixed_precision=config.precision,
            gradient_accumulation_steps=config.accumulate,
            cpu=checkpoint.model.device.type == "cpu",
        )
        chats = load_corpus(
            Path(source), checkpoint.tokenizer, next(iter(checkpoint.eos_ids), None),
            pipeline.cfg["data"].get("limit"), config.longest,
        )
        folder = self._folder(checkpoint.name, draft)
        recipe = EagleRecipe(
            checkpoint,
            chats,
            Path(config.cache) if config.cache else folder.parent / f"features-{checkpoint.name}",
            Shape(config.version, config.draft_vocab, config.intermediate, config.kv_heads),
            steps=config.steps,
            decay=config.decay,
            regress=config.regress,
            batch_tokens=config.batch_tokens,
            held_out=config.held_out,
            seed=int(pipeline.cfg.get("seed", 0)),
        )
        knobs = Knobs(
            config.learning_rate, config.weight_decay, config.clip, config.warmup,
            config.checkpoint_every,
        )
        world = accelerator.num_processes
        state = State(config.epochs, len(recipe.epoch(0)) // world, config.minutes)
        final: dict[str, float] = {}

        def report(metrics: dict[str, float], step: int) -> None:
            final.update(metrics)
            if accelerator.is_main_process:
                pipeline.log_metrics(metrics, step)

        bar = Progress(
            TextColumn("training"), BarColumn(), TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(), disable=not (sys.stdout.isatty() and accelerator.is_main_process),
        )
        with bar:
            row = bar.add_task("training", total=1.0, note="")

            def tick(now: State, loss: float) -> None:
                note = f"loss {loss:.3f} best length {now.best:.3f}"
                bar.update(row, completed=now.fraction, note=note)

            trainer = Trainer(
                recipe.plan(accelerator, checkpoint.name), knobs, state, accelerator, folder,
                report, tick,
            )
            if config.resume:
                trainer.resume()
            trainer.run()
        return final | {"head": str(folder / "best")}
