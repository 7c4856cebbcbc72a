"""A small model's first weights: layers of the target."""

from typing import Any

import torch
from torch import nn

from draftmesh.stages.model.layers import Parts


@torch.no_grad()
def start_from_layers(model: Any, target: Any) -> None:
    """Copy the first layers and the final norm, tensor by tensor where names and shapes agree.

    The first layers learn faster than layers from all depths, whose inputs are missing.
    """
    own, source = Parts.of(model), Parts.of(target)
    for layer, given in zip(own.layer_list, source.layer_list, strict=False):
        _copy(layer, given)
    _copy(own.norm_module, source.norm_module)


def _copy(to: nn.Module, source: nn.Module) -> None:
    given = dict(source.named_parameters())
    for name, parameter in to.named_parameters():
        if name in given and given[name].shape == parameter.shape:
            parameter.copy_(given[name])
