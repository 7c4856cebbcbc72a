"""From a target, a corpus and options to a plan that trains an exit adapter."""

from pathlib import Path
from typing import Any

import torch

from draftmesh.registry import UserError
from draftmesh.stages.draft.exitadapter import Exit, ExitAdapter, ExitShape
from draftmesh.stages.draft.partialhead import PartialHead
from draftmesh.stages.model.layers import Parts
from draftmesh.stages.task.training.base import HeadRecipe, cached_layers
from draftmesh.stages.task.training.material import Material
from draftmesh.stages.task.training.self.loss import ExitLoss
from draftmesh.stages.task.training.self.options import SelfOptions


class SelfRecipe(HeadRecipe):
    """Residual blocks after a layer, in place of the target's further layers."""

    kind = "self"
    head: ExitAdapter
    loss: ExitLoss

    def __init__(self, material: Material) -> None:
        options: SelfOptions = material.options.self
        started = material.started(Exit.load)
        layers = material.target.num_layers
        exit_layer = _exit_layer(options, layers) if started is None else _found(started, material)
        cached = cached_layers(layers)
        super().__init__(material, cached if exit_layer in cached else (exit_layer, layers))
        self.exit = started or self._first(options, exit_layer)
        self.head = self.exit.adapter.float().train()
        self.loss = ExitLoss(
            self.head,
            self.store.layers.index(exit_layer),
            PartialHead(self.target, self.exit.ids).rows,
            self.exit.ids,
            options.regress,
        )

    def _first(self, options: SelfOptions, exit_layer: int) -> Exit:
        config = self.target.config
        width = getattr(config, "intermediate_size", None) or 4 * self.target.hidden_size
        shape = ExitShape(
            self.target.hidden_size,
            exit_layer,
            options.blocks,
            options.intermediate or width,
            getattr(config, "rms_norm_eps", 1e-6),
        )
        adapter = ExitAdapter(shape)
        start_from_last(adapter, self.checkpoint.model)
        return Exit(adapter, self.frequent(options.draft_vocab))

    def write(self, folder: Path) -> None:
        """The adapter without the LM head."""
        self.exit.save(folder, torch.bfloat16, self.checkpoint.name, self.target.vocab_size)

    def describe(self) -> tuple[str, str]:
        """For the card."""
        shape = self.head.shape
        return (
            f"Exit of {self.checkpoint.name} after layer {shape.exit_layer}",
            f"{shape.blocks} residual feed-forward blocks, {self.size()}, bfloat16. They follow "
            f"the first {shape.exit_layer} of {self.target.num_layers} layers; the LM head is the "
            f"target's and not stored; {len(self.exit.ids)} of its tokens are drafted.",
        )


def _exit_layer(options: SelfOptions, layers: int) -> int:
    chosen = max(1, layers // 3) if options.exit_layer is None else options.exit_layer
    if not 1 <= chosen < layers:
        raise UserError(f"task.self.exit_layer={chosen}: needs a number from 1 to {layers - 1}")
    return chosen


def _found(started: Exit, material: Material) -> int:
    """The started adapter's layer, which the options may name, too."""
    asked, layer = material.options.self.exit_layer, started.adapter.shape.exit_layer
    if asked not in (None, layer):
        raise UserError(
            f"task.start={material.options.start}: reads layer {layer}; set "
            f"task.self.exit_layer={layer}"
        )
    return layer


@torch.no_grad()
def start_from_last(adapter: ExitAdapter, model: Any) -> None:
    """Take the feed-forward blocks of the target's last layers and its final norm, where names and
    shapes agree."""
    parts = Parts.of(model)
    sources = list(parts.layer_list)[-len(adapter.blocks) :]
    for block, source in zip(adapter.blocks, sources, strict=False):
        given = dict(source.named_parameters())
        for name, parameter in block.named_parameters():
            known = "post_attention_layernorm.weight" if name == "norm.weight" else f"mlp.{name}"
            if known in given and given[known].shape == parameter.shape:
                parameter.copy_(given[known])
    weight = getattr(parts.norm_module, "weight", None)
    if weight is not None and weight.shape == adapter.norm.weight.shape:
        adapter.norm.weight.copy_(weight)
