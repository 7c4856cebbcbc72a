from ranked_models import tiny
from torch import nn

from draftmesh.stages.parallel.group import Group
from draftmesh.stages.parallel.heads import is_attention, obstacle
from draftmesh.stages.parallel.traffic import Traffic

TWO = Group((0, 1), 0, Traffic())


def reasons(model: str) -> set[str | None]:
    return {obstacle(module, TWO) for module in tiny(model).modules() if is_attention(module)}


def test_only_plain_projections_are_split() -> None:
    assert reasons("llama") == reasons("qwen3") == reasons("gpt_oss") == {None}
    assert (
        reasons("phi3") == reasons("deepseek_v3") == {"has no separate q, k, v and o projections"}
    )
    (reason,) = reasons("afmoe")
    assert reason is not None
    assert "output gate" in reason


def test_queries_that_are_wider_than_the_output_are_not_split() -> None:
    """As where the query projection holds a gate too (Qwen3-Next)."""
    attention = tiny("llama").model.layers[0].self_attn
    attention.q_proj = nn.Linear(32, 64)
    assert "output gate" in (obstacle(attention, TWO) or "")
