"""What each draft node's processors look back on: the prefix and the node's own path."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.sampling import History


def node_histories(history: History, nodes: int, pad: int) -> tuple[Tensor, Tensor]:
    """The token ids before each of the last `nodes` nodes, all at once.

    Returns ids [B, nodes, L] int64, left-padded with `pad`, and the same with the prompt's tokens
    replaced by `pad` (what the model itself has written). Row by row this is `History.path`.
    """
    depth, climbed = _climb(history, nodes)
    committed = history.tokens[:, : int(history.lengths.max())]
    back = torch.arange(climbed.shape[-1] + committed.shape[1], device=committed.device)
    index = (history.lengths[:, None] + depth - 1).unsqueeze(-1) - back
    ids = _take(committed, index.clamp(0, max(committed.shape[1] - 1, 0)))
    ids[..., : climbed.shape[-1]] = torch.where(
        back[: climbed.shape[-1]] < depth.unsqueeze(-1), climbed, ids[..., : climbed.shape[-1]]
    )
    ids = ids.masked_fill(index < 0, pad)
    written = ids if history.prompts is None else _without_prompt(ids, index, history.prompts, pad)
    return ids.flip(-1), written.flip(-1)


def _climb(history: History, nodes: int) -> tuple[Tensor, Tensor]:
    """Depth [B, nodes] of each node and its path's tokens [B, nodes, D] from the node upwards."""
    rows, total = history.node_tokens.shape
    device = history.node_tokens.device
    at = torch.arange(total + 1 - nodes, total + 1, device=device).repeat(rows, 1)
    depth = torch.zeros_like(at)
    tokens: list[Tensor] = []
    while bool((at > 0).any()):
        above = (at - 1).clamp(min=0)
        tokens.append(history.node_tokens.gather(1, above))
        depth += at > 0
        at = torch.where(at > 0, history.parents.gather(1, above) + 1, at)
    climbed = torch.stack(tokens, -1) if tokens else at.new_zeros(rows, nodes, 0)
    return depth, climbed


def _take(committed: Tensor, index: Tensor) -> Tensor:
    rows, nodes, width = index.shape
    return committed.gather(1, index.reshape(rows, -1)).reshape(rows, nodes, width)


def _without_prompt(ids: Tensor, index: Tensor, prompts: Tensor, pad: int) -> Tensor:
    return ids.masked_fill(index < prompts[:, None, None], pad)
