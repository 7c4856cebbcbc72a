"""The attention function against a line-by-line one."""

import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.model.attention import attention
from draftmesh.stages.model.masks import Masks, ancestors

HEADS, KV, DIM, VALUE_DIM = 6, 2, 4, 3
TREE = torch.tensor([[-1, 0, 0, 2], [-1, -1, 1, 0]])
COMMITTED = [3, 1]


def inputs(tokens, columns, heads=HEADS, kv=KV):
    generator = torch.Generator().manual_seed(3)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return (
        draw(2, heads, tokens, DIM),
        draw(2, kv, columns, DIM),
        draw(2, kv, columns, VALUE_DIM),
    )


def tree_masks():
    whole = ancestors(TREE)
    return Masks(torch.tensor(COMMITTED), whole.sum(-1) - 1, whole, 7, False, False)


def causal_masks(tokens):
    depth = torch.arange(tokens)[None].expand(2, -1)
    related = depth[:, :, None] >= depth[:, None]
    return Masks(torch.zeros(2, dtype=torch.long), depth, related, tokens, True, True)


def slow(query, key, value, seen, scale, softcap, sinks):
    """seen[row][token]: the columns it may look at -> [B, T, Hq, Dv]."""
    rows, heads, tokens, _ = query.shape
    out = torch.empty(rows, tokens, heads, value.shape[-1], dtype=query.dtype)
    for row in range(rows):
        for head in range(heads):
            group = head // (heads // key.shape[1])
            for token in range(tokens):
                at = seen[row][token]
                scores = key[row, group, at] @ query[row, head, token] * scale
                if softcap is not None:
                    scores = softcap * torch.tanh(scores / softcap)
                if sinks is not None:
                    scores = torch.cat([scores, sinks[head : head + 1]])
                weights = scores.softmax(0)[: len(at)]
                out[row, token, head] = weights @ value[row, group, at]
    return out


def tree_columns(window):
    whole = ancestors(TREE)
    seen = []
    for row, committed in enumerate(COMMITTED):
        lines = []
        for token in range(4):
            nodes = whole[row, token].nonzero().flatten() + committed
            line = [*range(committed), *nodes.tolist()]
            lines.append(line if window is None else line[-window:])
        seen.append(lines)
    return seen


@pytest.mark.parametrize("kv", [KV, HEADS])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize(("softcap", "sink"), [(None, False), (2.0, False), (None, True)])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_trees(kv, window, softcap, sink, scale):
    query, key, value = inputs(4, 7, kv=kv)
    sinks = torch.linspace(-1, 1, HEADS, dtype=torch.float64) if sink else None
    ours, _ = attention(
        torch.nn.Module(),
        query,
        key,
        value,
        None,
        scaling=scale,
        sliding_window=window,
        softcap=softcap,
        s_aux=sinks,
        masks=tree_masks(),
    )
    wanted = slow(query, key, value, tree_columns(window), scale or DIM**-0.5, softcap, sinks)
    assert torch.allclose(ours, wanted, atol=1e-12)
    assert ours.is_contiguous()


@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize(("softcap", "sink"), [(None, False), (2.0, False), (None, True)])
def test_causal_without_a_mask(tokens, softcap, sink):
    query, key, value = inputs(tokens, tokens)
    sinks = torch.linspace(-1, 1, HEADS, dtype=torch.float64) if sink else None
    ours, _ = attention(
        torch.nn.Module(),
        query,
        key,
        value,
        None,
        softcap=softcap,
        s_aux=sinks,
        masks=causal_masks(tokens),
    )
    seen = [[list(range(token + 1)) for token in range(tokens)]] * 2
    assert torch.allclose(
        ours, slow(query, key, value, seen, DIM**-0.5, softcap, sinks), atol=1e-12
    )


def test_a_model_that_drops_the_masks_is_refused():
    with pytest.raises(UserError, match=r"model\.path"):
        attention(torch.nn.Module(), *inputs(1, 1), None)
