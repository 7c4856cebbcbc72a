"""`task=train`: train a draft for the configured model."""

from pathlib import Path

from accelerate import Accelerator

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.training.bar import training_bar
from draftmesh.stages.task.training.corpus import Corpus, fingerprint, load_corpus
from draftmesh.stages.task.training.identity import claim, digest, file_digest, model_digest
from draftmesh.stages.task.training.loop import Knobs, Trainer
from draftmesh.stages.task.training.material import Material
from draftmesh.stages.task.training.metrics import append_metrics
from draftmesh.stages.task.training.options import TrainOptions
from draftmesh.stages.task.training.progress import Progress
from draftmesh.stages.task.training.recipe import Recipe, recipe_for
from draftmesh.stages.task.training.selfgen import write_chats

TRAININGS = Path("outputs") / "training"


@register("task", "train")
class Train:
    """Train the configured draft on chats; killed and started again, it continues."""

    Config = TrainOptions

    def __init__(self, config: TrainOptions) -> None:
        self.config = config

    def run(self, pipeline: Pipeline) -> RunResult:
        """Train to the end; the folder then holds `best/` and `last/`, usable as draft.path."""
        config, checkpoint = self.config, pipeline.checkpoint
        draft = str(pipeline.cfg["draft"]["name"])
        make_recipe = recipe_for(draft)
        config.check(draft)
        source = _source(pipeline)
        limit = pipeline.cfg["data"].get("limit")
        eos = checkpoint.tokenizer.eos_token_id
        longest = min(config.longest, pipeline.target.context)
        chats = load_corpus(source, checkpoint.tokenizer, eos, limit, longest)
        corpus = Corpus(source.name, chats)
        material = fingerprint(chats, draft, model_digest(checkpoint.model))
        folder = self._folder(pipeline, draft, material)
        claim(folder, material, config.resume)
        accelerator = Accelerator(
            mixed_precision=config.precision,
            gradient_accumulation_steps=config.accumulate,
            cpu=checkpoint.model.device.type == "cpu",
        )
        cache = Path(config.cache) if config.cache else folder.parent / "features"
        with accelerator.main_process_first():
            seed = int(pipeline.cfg["seed"])
            recipe = make_recipe(Material(checkpoint, pipeline.target, corpus, cache, config, seed))
        final: dict[str, float] = {}

        def report(metrics: dict[str, float], step: int) -> None:
            if accelerator.is_main_process:
                final.update(metrics)
                append_metrics(folder, metrics, step)
                pipeline.log_metrics(metrics, step)

        with training_bar(accelerator.is_main_process) as tick:
            trainer = Trainer(
                recipe.plan(accelerator),
                knobs(config),
                self._progress(recipe, accelerator.num_processes),
                accelerator,
                folder,
                report,
                tick,
            )
            over = config.resume and trainer.resume() and trainer.progress.fraction >= 1
            if not over:
                trainer.run()
        best = folder / "best"
        lines = [f"trained: {best} (draft={draft} draft.path={best})"]
        if over:
            lines = [
                f"trained to the end before: {best} (draft={draft} draft.path={best}); "
                "task.resume=false trains it anew"
            ]
        length = final.get("val_acceptance_length")
        if length is not None:
            lines.append(f"held-out chats: {length:.2f} tokens per target forward")
        return RunResult(metrics={**final, "head": str(best)}, lines=lines)

    def _progress(self, recipe: Recipe, world: int) -> Progress:
        batches = len(recipe.epoch(0)) // world
        if batches == 0:
            raise UserError(
                f"data.path: beside the chats held out, there are too few for {world} "
                f"batch{'es' if world > 1 else ''}: give chats with more different prompts"
            )
        return Progress(self.config.epochs, batches, self.config.minutes)

    def _folder(self, pipeline: Pipeline, draft: str, material: str) -> Path:
        if self.config.folder:
            return Path(self.config.folder).expanduser()
        same = [self.config.identity(draft), pipeline.cfg["seed"], material]
        return TRAININGS / f"{pipeline.checkpoint.name}-{draft}-{digest(same)}"


def _source(pipeline: Pipeline) -> Path:
    """The corpus. Raises UserError for what cannot be trained."""
    if pipeline.cfg["draft"].get("exit_layer") is not None:
        raise UserError("draft.exit_layer: task=train takes the layer from task.self.exit_layer")
    if pipeline.ranks.world > 1:
        raise UserError("task=train runs on the whole model: use parallel=single")
    data = pipeline.cfg["data"]
    if data["name"] == "selfgen":
        prompts = file_digest(Path(data["path"]).expanduser()) if data.get("path") else None
        model = model_digest(pipeline.checkpoint.model)
        same = [data, prompts, model, pipeline.cfg["seed"], pipeline.cfg["max_new_tokens"]]
        return write_chats(pipeline, TRAININGS / f"{pipeline.checkpoint.name}-chats-{digest(same)}")
    if not data.get("path"):
        raise UserError(
            "task=train needs chats: data=jsonl data.path=<file>, or data=selfgen, which the model "
            "writes itself"
        )
    return Path(data["path"]).expanduser()


def knobs(config: TrainOptions) -> Knobs:
    """The loop's part of the options."""
    return Knobs(
        config.learning_rate,
        config.weight_decay,
        config.clip,
        config.warmup,
        config.checkpoint_every,
    )
