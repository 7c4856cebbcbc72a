"""Training-time test: the head is run on its own outputs, as it will be when drafting.

Step 0 reads the target's features; step j reads the head's output of step j - 1 at the same index
and the true token j places on. It attends to the keys of step 0 up to its index and to its own
keys of steps 1 to j (EAGLE-3, arXiv 2503.01840). Prompts only give keys: nothing is learnt there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.windows import Windows, take


def _spread(x: Tensor, groups: int) -> Tensor:
    return x if groups == 1 else x.repeat_interleave(groups, 1)


@dataclass(frozen=True)
class Context:
    """Keys and values [B, heads, S, D] of step 0, which of them each window index may see
    [B, 1, R, S], and those of the later steps, one per window index."""

    keys: Tensor
    values: Tensor
    seen: Tensor
    own: tuple[tuple[Tensor, Tensor], ...] = ()

    def attend(self, queries: Tensor) -> Tensor:
        """queries [B, heads, R, D] -> attended values, over step 0's keys and the query's own."""
        groups = queries.shape[1] // self.keys.shape[1]
        keys, values = _spread(self.keys, groups), _spread(self.values, groups)
        queries = queries * queries.shape[-1] ** -0.5
        scores = (queries @ keys.transpose(-1, -2)).masked_fill(~self.seen, -torch.inf)
        own = [(_spread(key, groups), _spread(value, groups)) for key, value in self.own]
        columns = [(queries * key).sum(-1, keepdim=True) for key, _ in own]
        weights = torch.cat([scores, *columns], -1).softmax(-1, dtype=torch.float32)
        weights = weights.to(values.dtype)
        heads = weights[..., : keys.shape[2]] @ values
        for step, (_, value) in enumerate(own):
            heads = heads + weights[..., keys.shape[2] + step, None] * value
        return heads


def _step0(
    head: Head, batch: Batch, embeddings: Tensor, windows: Windows
) -> tuple[Context, Tensor]:
    hidden = head.fuse(_features(head, batch))
    entry = head.enter(embeddings[:, 1:], hidden[:, :-1])
    positions = torch.arange(entry.attend.shape[1], device=hidden.device)
    rotation = head.rotation(positions.expand(len(batch.tokens), -1), entry.attend.dtype)
    attention = head.midlayer.self_attn
    keys, values = attention.keys_values(entry.attend, rotation)
    index = windows.index(0)
    seen = (positions <= index[..., None])[:, None]
    queries = attention.queries(take(entry.attend, index), head.rotation(index, entry.attend.dtype))
    context = Context(keys, values, seen)
    return context, head.midlayer.finish(take(entry.residual, index), context.attend(queries))


def _features(head: Head, batch: Batch) -> Tensor:
    """The layers `fc` reads, side by side: all but the last, or only the last for version 1."""
    used = batch.features[:, :, -1:] if head.config.version == 1 else batch.features[:, :, :-1]
    return used.flatten(2).to(head.fc.weight.dtype)


def unroll(head: Head, batch: Batch, table: Tensor, steps: int) -> list[Tensor]:
    """The head's outputs [B, R, H] at each of `steps` steps; table [V, H] is the embedding.

    Output j at window index r is the state for the token at start + r + 2 + j.
    """
    windows = Windows.of(batch)
    embeddings = functional.embedding(batch.tokens, table).to(head.fc.weight.dtype)
    context, output = _step0(head, batch, embeddings, windows)
    outputs = [output]
    attention = head.midlayer.self_attn
    for step in range(1, steps):
        entry = head.enter(take(embeddings, windows.index(1 + step)), head.feedback(output))
        rotation = head.rotation(windows.index(step), entry.attend.dtype)
        own = attention.keys_values(entry.attend, rotation)
        context = Context(context.keys, context.values, context.seen, (*context.own, own))
        heads = context.attend(attention.queries(entry.attend, rotation))
        output = head.midlayer.finish(entry.residual, heads)
        outputs.append(output)
    return outputs
