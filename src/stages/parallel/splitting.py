"""A whole model becomes this rank's part of it."""

from dataclasses import dataclass
from typing import Any, Protocol

from draftmesh.stages.parallel.probe import Probe
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.tensor import shard_tensor_parallel


class FeedForwardStage(Protocol):
    """Kind `ffn`: how a model's feed-forward blocks are executed."""

    def upcycles(self, model: Any, mesh: Mesh) -> bool:
        """Whether `apply` will replace dense blocks by experts."""
        ...

    def apply(self, model: Any, mesh: Mesh) -> Any:
        """Change the model's blocks in place and say what became of them."""
        ...


@dataclass(frozen=True)
class Split:
    """What the `ffn` stage returned, and lines to tell the user."""

    feed_forward: Any
    notes: tuple[str, ...]


def split_model(model: Any, stage: FeedForwardStage, mesh: Mesh) -> Split:
    """Apply the `ffn` stage and tensor parallelism to a loaded model, in place, and check on one
    batch that it still computes the same.

    Called by every rank, before the model is wrapped in a Target. Raises UserError if the model
    cannot be split this way.
    """
    mesh.ready()
    upcycled = stage.upcycles(model, mesh)
    probe = Probe(model) if mesh.world > 1 or upcycled else None
    feed = stage.apply(model, mesh)
    notes = [*feed.notes, *shard_tensor_parallel(model, mesh)]
    if probe is not None:
        change = probe.check(f"parallel ({mesh.plan.name})")
        if upcycled:
            dtype = str(model.dtype).removeprefix("torch.")
            notes.append(f"its outputs in {dtype} are unchanged on one batch (by {change:.0e})")
    if feed.moe is not None:
        feed.moe.reset()
    mesh.traffic.reset()
    return Split(feed, tuple(notes))
