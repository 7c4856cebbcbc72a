"""A small model's first weights: layers of the target."""

from typing import Any

import torch
from torch import nn

from draftmesh.stages.model.layers import Parts


def chosen_layers(count: int, layers: int) -> list[int]:
    """`count` of `layers` layers, evenly from the first to the last; a single one is the last."""
    if count == 1:
        return [layers - 1]
    return [round(i * (layers - 1) / (count - 1)) for i in range(count)]


@torch.no_grad()
def start_from_layers(model: Any, target: Any) -> None:
    """Copy evenly chosen layers and the final norm, tensor by tensor where names and shapes agree.

    More layers than the target has repeat some.
    """
    own, source = Parts.of(model), Parts.of(target)
    chosen = chosen_layers(len(own.layer_list), len(source.layer_list))
    for layer, index in zip(own.layer_list, chosen, strict=True):
        _copy(layer, source.layer_list[index])
    _copy(own.norm_module, source.norm_module)


def _copy(to: nn.Module, source: nn.Module) -> None:
    given = dict(source.named_parameters())
    for name, parameter in to.named_parameters():
        if name in given and given[name].shape == parameter.shape:
            parameter.copy_(given[name])
