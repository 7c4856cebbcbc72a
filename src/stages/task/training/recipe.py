"""From a target, a corpus and options to a plan that trains an EAGLE head."""

from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from draftmesh.registry import UserError
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.eagle.config import HeadConfig, default_capture
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.safeai import save_head
from draftmesh.stages.draft.eagle.speculators import save_speculators
from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.batches import Batch, load_batch, plan
from draftmesh.stages.task.training.card import Facts, write_card
from draftmesh.stages.task.training.corpus import Corpus, split
from draftmesh.stages.task.training.eagle import EagleLoss
from draftmesh.stages.task.training.features import FeatureStore
from draftmesh.stages.task.training.initial import start_from_target
from draftmesh.stages.task.training.loop import Plan
from draftmesh.stages.task.training.options import TrainOptions
from draftmesh.stages.task.training.progress import Progress
from draftmesh.stages.task.training.vocabulary import frequent_tokens

DEPTH = 5
"""Draft positions whose acceptance is measured."""


def head_config(options: TrainOptions, config: Any) -> HeadConfig:
    """A head for a target with this Hugging Face config."""
    heads = config.num_attention_heads
    kv_heads = options.kv_heads or heads
    if heads % kv_heads:
        raise UserError(f"task.kv_heads={kv_heads}: must divide the head's {heads} query heads")
    reduced = min(options.draft_vocab, config.vocab_size)
    rope = getattr(config, "rope_parameters", None) or {}
    return HeadConfig(
        version=options.version,
        hidden=config.hidden_size,
        target_hidden=config.hidden_size,
        intermediate=options.intermediate or config.intermediate_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        vocab=config.vocab_size,
        draft_vocab=reduced if options.version == 3 else config.vocab_size,
        capture=default_capture(options.version, config.num_hidden_layers),
        eps=getattr(config, "rms_norm_eps", 1e-6),
        rope_theta=float(rope.get("rope_theta", 10000.0)),
        max_position=config.max_position_embeddings,
    )


class EagleRecipe:
    """An EAGLE head, its loss, and the batches to train and to measure it on."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        target: Target,
        corpus: Corpus,
        cache: Path,
        options: TrainOptions,
        seed: int,
    ) -> None:
        self.checkpoint, self.options, self.seed = checkpoint, options, seed
        self.corpus, self.chats = corpus.name, corpus.chats
        chats = corpus.chats
        self.train, held = split(chats, options.held_out, seed)
        self.held = [i for i in held if chats[i].greedy] or held
        model, config = checkpoint.model, target.config
        layers = (*default_capture(3, config.num_hidden_layers), config.num_hidden_layers)
        self.store = FeatureStore(cache, chats, target, layers, checkpoint.name)
        torch.manual_seed(seed)
        self.head = Head(head_config(options, config))
        tokens = frequent_tokens(chats, self.train, options.draft_vocab, checkpoint.eos_ids)
        start_from_target(self.head, model, tokens)
        self.embedding = model.get_input_embeddings().weight
        self.loss = EagleLoss(
            self.head,
            self.embedding,
            model.get_output_embeddings().weight,
            tokens,
            decay=options.decay,
            regress=options.regress,
        )
        self.lengths = [(len(chat.ids) - chat.prompt, len(chat.ids)) for chat in chats]

    def plan(self, accelerator: Accelerator) -> Plan[Batch]:
        """For the training loop."""

        def measure() -> dict[str, float]:
            with accelerator.autocast():
                return self.measure()

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
        """The head in SafeAILab's layout with its card; version 3 in speculators' too, below it."""
        name = self.checkpoint.name
        save_head(self.head, folder, torch.bfloat16, {"draftmesh_draft": "eagle", "target": name})
        if self.head.config.version == 3:
            save_speculators(
                self.head, folder / "speculators", torch.bfloat16, name, self.embedding, DEPTH
            )

        write_card(folder, self.facts(progress, metrics))

    def facts(self, progress: Progress, metrics: dict[str, float]) -> Facts:
        """For the model card."""
        return Facts(
            target=self.checkpoint.name,
            version=self.head.config.version,
            parameters=sum(p.numel() for p in self.head.parameters()),
            corpus=self.corpus,
            chats=len(self.chats),
            answer_tokens=sum(answer for answer, _ in self.lengths),
            seen_tokens=progress.tokens,
            steps=progress.step,
            seconds=progress.seconds,
            options=self.options.overrides(),
            metrics=metrics,
        )

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch; sets the depth of its training-time test."""
        depths = self.options.steps
        self.loss.steps = depths[min(number, len(depths) - 1)]
        return list(plan(self.lengths, self.train, self.options.batch_tokens, self.seed + number))

    def measure(self) -> dict[str, float]:
        """Greedy acceptance on held-out chats: per draft position, and the mean length by style."""
        acceptance = Acceptance(DEPTH)
        for indices in plan(self.lengths, self.held, self.options.batch_tokens, 0):
            batch = load_batch(self.store, indices).to(self.loss.table.device)
            self.loss.measure(batch, [self.chats[i].style for i in indices], acceptance)
        metrics = {f"val_accept_{j + 1}": rate for j, rate in enumerate(acceptance.rates())}
        for style in acceptance.total:
            key = "val_acceptance_length" + ("" if style == "all" else f"_{style}")
            metrics[key] = acceptance.length(style)
        return metrics
