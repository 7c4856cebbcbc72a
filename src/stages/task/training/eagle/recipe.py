"""From a target, a corpus and options to a plan that trains an EAGLE head."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.stages.draft.eagle.config import HeadConfig, default_capture
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.loader import load_head
from draftmesh.stages.draft.eagle.safeai import save_head
from draftmesh.stages.draft.eagle.speculators import save_speculators
from draftmesh.stages.task.training.base import DEPTH, HeadRecipe
from draftmesh.stages.task.training.eagle.initial import start_from_target
from draftmesh.stages.task.training.eagle.loss import EagleLoss
from draftmesh.stages.task.training.eagle.options import EagleOptions
from draftmesh.stages.task.training.material import Material


def head_config(options: EagleOptions, config: Any) -> HeadConfig:
    """A head for a target with this Hugging Face config."""
    heads = config.num_attention_heads
    kv_heads = options.kv_heads or heads
    if heads % kv_heads:
        raise UserError(
            f"task.eagle.kv_heads={kv_heads}: must divide the head's {heads} query heads"
        )
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


class EagleRecipe(HeadRecipe):
    """An EAGLE head of version 1 or 3."""

    kind = "eagle"
    head: Head
    loss: EagleLoss

    def __init__(self, material: Material) -> None:
        options = material.options.eagle
        started = material.started(load_head)
        super().__init__(material, _layers(started, material.target.num_layers))
        model = self.checkpoint.model
        tokens = self.frequent(options.draft_vocab)
        if started is None:
            self.head = Head(head_config(options, self.target.config))
            start_from_target(self.head, model, tokens)
        else:
            self.head = _trainable(started, options.version, str(material.options.start))
            tokens = _vocabulary(self.head, tokens)
        self.embedding = model.get_input_embeddings().weight
        self.loss = EagleLoss(
            self.head,
            self.embedding,
            model.get_output_embeddings().weight,
            tokens,
            decay=material.options.decay,
            regress=options.regress,
        )

    def write(self, folder: Path) -> None:
        """The head in SafeAILab's layout; version 3 in speculators' too, below it."""
        name = self.checkpoint.name
        save_head(self.head, folder, torch.bfloat16, {"draftmesh_draft": "eagle", "target": name})
        if self.head.config.version == 3:
            save_speculators(
                self.head, folder / "speculators", torch.bfloat16, name, self.embedding, DEPTH
            )

    def describe(self) -> tuple[str, str]:
        """For the card."""
        title = f"EAGLE-{self.head.config.version} head for {self.checkpoint.name}"
        layout = "SafeAILab layout, bfloat16. The token embedding is the target's."
        return title, f"{self.size()}, {layout}"

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch; sets the depth of its training-time test."""
        depths = self.options.eagle.steps
        self.loss.steps = depths[min(number, len(depths) - 1)]
        return super().epoch(number)


def _layers(started: Head | None, layers: int) -> tuple[int, ...] | None:
    """The layers that a started head reads and the final-normed state; else the usual ones."""
    if started is None or started.config.version == 1:
        return None
    return (*started.config.capture, layers)


def _trainable(head: Head, version: int, start: str) -> Head:
    if head.config.version != version:
        found = head.config.version
        raise UserError(
            f"task.start={start}: an EAGLE-{found} head: set task.eagle.version={found}"
        )
    return head.to(device="cpu", dtype=torch.float32).requires_grad_(True).train()


def _vocabulary(head: Head, frequent: Tensor) -> Tensor:
    """The ids a started head is trained on: its own; all if it drafts all."""
    if head.config.version == 1:
        return frequent
    return head.target_ids.cpu() if head.config.reduced else torch.arange(head.config.vocab)
