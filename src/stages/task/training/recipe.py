"""From a target, a corpus and options to a plan that trains an EAGLE head."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.errors import UserError
from draftmesh.stages.draft.eagle.config import HeadConfig, default_capture
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.safeai import save_head
from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.batches import Batch, load_batch, plan
from draftmesh.stages.task.training.corpus import Chat, split
from draftmesh.stages.task.training.eagle import EagleLoss
from draftmesh.stages.task.training.features import FeatureStore
from draftmesh.stages.task.training.initial import start_from_target
from draftmesh.stages.task.training.loop import Plan
from draftmesh.stages.task.training.vocabulary import frequent_tokens

DEPTH = 5
"""Draft positions whose acceptance is measured."""


@dataclass(frozen=True)
class Shape:
    """The head to train; None takes the target's size."""

    version: int
    draft_vocab: int
    intermediate: int | None
    kv_heads: int | None


def head_config(shape: Shape, config: Any) -> HeadConfig:
    """A head for a target with this Hugging Face config."""
    if shape.version not in (1, 3):
        raise UserError(f"task.version={shape.version}: train version 1 or 3")
    rope = getattr(config, "rope_parameters", None) or {}
    heads = config.num_attention_heads
    kv_heads = shape.kv_heads or heads
    if heads % kv_heads:
        raise UserError(f"task.kv_heads={kv_heads} does not divide the head's {heads} heads")
    return HeadConfig(
        version=shape.version,
        hidden=config.hidden_size,
        target_hidden=config.hidden_size,
        intermediate=shape.intermediate or config.intermediate_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        vocab=config.vocab_size,
        draft_vocab=(
            config.vocab_size
            if shape.version == 1
            else min(shape.draft_vocab, config.vocab_size)
        ),
        capture=default_capture(shape.version, config.num_hidden_layers),
        eps=getattr(config, "rms_norm_eps", 1e-6),
        rope_theta=float(rope.get("rope_theta", 10000.0)),
        max_position=config.max_position_embeddings,
    )


class EagleRecipe:
    """An EAGLE head, its loss, and the batches to train and to measure it on."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        chats: list[Chat],
        cache: Path,
        shape: Shape,
        *,
        steps: int,
        decay: float,
        regress: float,
        batch_tokens: int,
        held_out: float,
        seed: int,
    ) -> None:
        self.chats, self.batch_tokens, self.seed = chats, batch_tokens, seed
        self.train, held = split(chats, held_out, seed)
        self.held = [i for i in held if chats[i].greedy] or held
        model = checkpoint.model
        layers = (*default_capture(3, model.config.num_hidden_layers), model.config.num_hidden_layers)
        self.store = FeatureStore(cache, chats, model, layers, checkpoint.name)
        self.head = Head(head_config(shape, model.config))
        tokens = frequent_tokens(chats, self.train, shape.draft_vocab, checkpoint.eos_ids)
        start_from_target(self.head, model, tokens)
        self.loss = EagleLoss(
            self.head,
            model.get_input_embeddings().weight,
            model.get_output_embeddings().weight,
            tokens,
            steps=steps,
            decay=decay,
            regress=regress,
        )
        self.lengths = [(len(chat.ids) - chat.prompt, len(chat.ids)) for chat in chats]

    def plan(self, accelerator: Any, name: str) -> Plan[Batch]:
        """For the training loop; `name` is the verifier's, for the head's config.json."""

        def measure() -> dict[str, float]:
            with accelerator.autocast():
                return self.measure()

        def save(folder: Path) -> None:
            save_head(self.head, folder, torch.bfloat16, {"target": name})

        return Plan(
            self.loss,
            list(self.head.parameters()),
            self.epoch,
            lambda indices: load_batch(self.store, indices).to(accelerator.device),
            lambda indices: sum(self.lengths[i][0] for i in indices),
            measure,
            save,
            "val_acceptance_length",
        )

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch."""
        return list(plan(self.lengths, self.train, self.batch_tokens, self.seed + number))

    def measure(self) -> dict[str, float]:
        """Greedy acceptance on held-out chats: per draft position, and the mean length by style."""
        acceptance = Acceptance(DEPTH)
        for indices in plan(self.lengths, self.held, self.batch_tokens, 0):
            batch = load_batch(self.store, indices).to(self.loss.table.device)
            self.loss.measure(batch, [self.chats[i].style for i in indices], acceptance)
        metrics = {f"val_accept_{j + 1}": rate for j, rate in enumerate(acceptance.rates())}
        for style in acceptance.total:
            key = "val_acceptance_length" + ("" if style == "all" else f"_{style}")
            metrics[key] = acceptance.length(style)
        return metrics

