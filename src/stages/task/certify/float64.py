"""The run's pipeline once more, in float64."""

from dataclasses import dataclass, fields

import torch

from draftmesh.registry import UserError, get
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.model.memory import free_memory
from draftmesh.stages.task.certify.memory import layers_that_fit


@dataclass(frozen=True)
class Doubled:
    """The pipeline in float64, None where there can be none; a note says what is missing."""

    pipeline: Pipeline | None
    note: str | None = None


def in_float64(pipeline: Pipeline) -> Doubled:
    """Load the run's model again in float64, or as many of its first layers as memory holds.

    Called by every rank.
    """
    target, ranks = pipeline.target, pipeline.ranks
    if target.dtype == torch.float64:
        return Doubled(pipeline)
    name, total = pipeline.spec.model["name"], target.num_layers
    options = {field.name for field in fields(get("model", name).Config)}
    if "dtype" not in options:
        return Doubled(None, f"left out: model={name} has no option dtype")
    free = free_memory(target.device) // (ranks.world if target.device.type == "cpu" else 1)
    (short,) = ranks.agree(total - layers_that_fit(target, free, ranks.tp))
    if short == 0:
        return Doubled(pipeline.variant(model={"dtype": "float64"}))
    if short == total or "layers" not in options:
        return Doubled(None, "left out: the model does not fit into memory in float64")
    return _shortened(pipeline, total - short)


def _shortened(pipeline: Pipeline, layers: int) -> Doubled:
    note = f"the first {layers} of {pipeline.target.num_layers} layers, which fit into memory"
    variant = pipeline.variant(model={"dtype": "float64", "layers": layers})
    try:
        captures = variant.main_draft.capture
    except UserError as error:
        return Doubled(None, f"left out: {note} in float64, but the draft needs more ({error})")
    if captures:
        return Doubled(None, f"left out: {note} in float64, but the draft reads later ones")
    return Doubled(variant, note)
