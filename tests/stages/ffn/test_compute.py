import dataclasses

import pytest
import torch
from ranked_models import MOE, tiny, tokens

from draftmesh.registry import UserError, build
from draftmesh.stages.ffn.stage import FeedForward
from draftmesh.stages.parallel.ranks import Solo


def prepared(model: object, compute: str) -> FeedForward:
    mesh = Solo()
    mesh.plan = dataclasses.replace(mesh.plan, compute=compute)
    feed: FeedForward = build("ffn", {"name": "auto"}).apply(model, mesh)
    return feed


@pytest.mark.parametrize("compute", ["loop", "batched"])
@pytest.mark.parametrize("model", MOE)
def test_experts_equal_transformers_in_float64(model: str, compute: str) -> None:
    ours, theirs, ids = tiny(model), tiny(model), tokens(0, 2, 9)
    feed = prepared(ours, compute)
    expected = theirs(ids).logits
    assert torch.allclose(ours(ids).logits, expected, rtol=0, atol=1e-11)
    assert feed.moe is not None
    assert feed.moe.load.counts.sum() > 0


@pytest.mark.parametrize("model", ["mixtral", "gpt_oss"])
def test_grouped_products_equal_the_loop_in_float32(model: str) -> None:
    grouped, loop, ids = tiny(model, torch.float32), tiny(model, torch.float32), tokens(0, 2, 9)
    prepared(grouped, "grouped_mm")
    prepared(loop, "loop")
    assert torch.allclose(grouped(ids).logits, loop(ids).logits, rtol=0, atol=1e-4)


def test_grouped_products_name_what_they_cannot_do() -> None:
    with pytest.raises(UserError, match=r"no float64 kernel; use parallel\.compute=loop"):
        prepared(tiny("mixtral"), "grouped_mm")
    narrow = tiny("mixtral", torch.bfloat16, intermediate_size=20)
    with pytest.raises(UserError, match="a width of 20 is not a multiple of 16 bytes"):
        prepared(narrow, "grouped_mm")


@pytest.mark.parametrize("compute", ["loop", "batched", "grouped_mm"])
def test_no_rows_and_experts_without_rows(compute: str) -> None:
    model = tiny("gpt_oss", torch.float32)
    experts = model.model.layers[0].mlp.experts
    run = build("compute", {"name": compute})
    assert run(experts, torch.empty(0, 32), [0] * 8).shape == (0, 32)
    rows = torch.randn(5, 32)
    some = run(experts, rows, [0, 2, 0, 0, 3, 0, 0, 0])
    alone = torch.cat(
        [run(experts, row[None], counts) for row, counts in zip(rows, ONE, strict=True)]
    )
    assert torch.allclose(some, alone, atol=1e-4)
    assert (some[0] - some[1]).abs().max() > 0.01


ONE = [[int(e == expert) for e in range(8)] for expert in (1, 1, 4, 4, 4)]
