"""Tensor parallelism of a Hugging Face decoder, in place."""

from typing import Any

from draftmesh.registry import UserError
from draftmesh.stages.parallel.feedforward import is_mlp, split_mlp
from draftmesh.stages.parallel.heads import is_attention, obstacle, split_attention
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.vocabulary import shard_vocabulary


def shard_tensor_parallel(model: Any, mesh: Mesh) -> list[str]:
    """Split attention (by key/value groups), MLPs and vocabulary over the tensor-parallel group.

    Called by every rank after the `ffn` stage (which splits the experts) and before the model is
    wrapped in a Target. Norms, routers and whatever has an unknown layout stay replicated. Returns
    lines that say what is not split. Raises UserError if nothing can be.
    """
    group = mesh.tp_group
    if group.size == 1:
        return []
    reasons: set[str] = set()
    attention = feedforward = 0
    for module in list(model.modules()):
        if is_attention(module):
            reason = obstacle(module, group)
            if reason is None:
                split_attention(module, group)
                attention += 1
            else:
                reasons.add(reason)
        elif is_mlp(module):
            feedforward += split_mlp(module, group)
    vocabulary = shard_vocabulary(model, group)
    if not attention and not feedforward and not vocabulary:
        raise UserError(
            f"parallel.tp={group.size}: nothing in {type(model).__name__} can be split; "
            "use parallel.tp=1"
        )
    experts = mesh.ep * mesh.etp > 1 and any(hasattr(m, "is_transposed") for m in model.modules())
    parts = {
        "attention": attention,
        "feed-forward": feedforward or experts,
        "vocabulary": vocabulary,
    }
    done = " and ".join(name for name, whether in parts.items() if whether)
    return [
        f"parallel.tp={group.size}: attention {reason} and is computed by every rank; {done} split"
        for reason in sorted(reasons)
    ]
