from typing import Any

import pytest
import torch
from ranked_models import MOE, tiny

from draftmesh.registry import UserError, build
from draftmesh.stages.ffn.experts import expert_modules
from draftmesh.stages.ffn.shard import shard_experts


def blocks(model: str) -> Any:
    return expert_modules(tiny(model))[0]


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("model", MOE)
def test_pieces_of_an_expert_add_up(model: str, parts: int) -> None:
    run = build("compute", {"name": "loop"})
    rows = torch.randn(4, 32, dtype=torch.float64)
    whole = run(blocks(model), rows, [1, 1, 0, 1, 0, 1][: blocks(model).num_experts])
    total = torch.zeros_like(whole)
    sizes = []
    for part in range(parts):
        block = blocks(model)
        shard_experts(block, [0, 1, 3, 5], part, parts)
        assert len(block.down_proj) == 4
        sizes.append(block.down_proj.numel())
        total += run(block, rows, [1] * 4)
    assert torch.allclose(total, whole, atol=1e-12)
    assert sum(sizes) * blocks(model).num_experts == blocks(model).down_proj.numel() * 4


def test_more_pieces_than_width() -> None:
    with pytest.raises(UserError, match=r"parallel\.etp=64.*width is only 40"):
        shard_experts(blocks("mixtral"), [0], 0, 64)
