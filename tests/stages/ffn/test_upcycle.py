import pytest
import torch
from ranked_models import tiny, tokens

from draftmesh.registry import UserError, build
from draftmesh.stages.ffn.moe import MoE
from draftmesh.stages.ffn.router import CopyRouter
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.parallel.splitting import split_model


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("model", ["llama", "llama_9_3", "gemma2"])
def test_copies_change_nothing(model: str, dtype: torch.dtype) -> None:
    dense, ids = tiny(model, dtype), tokens(0, 2, 9)
    upcycled = tiny(model, dtype)
    split = split_model(upcycled, build("ffn", {"name": "moe", "experts": 4}), Solo())
    assert split.feed_forward.kind == "moe"
    assert "2 blocks of 4 equal experts, top-1" in split.notes[0]
    assert "unchanged on one batch" in split.notes[1]
    limit = {torch.float64: 1e-12, torch.float32: 1e-4, torch.bfloat16: 0.1}[dtype]
    assert (upcycled(ids).logits - dense(ids).logits).abs().max() <= limit


def test_weights_of_several_copies_sum_to_one() -> None:
    dense, upcycled, ids = tiny("llama"), tiny("llama"), tokens(0, 2, 9)
    split_model(upcycled, build("ffn", {"name": "moe", "top_k": 3}), Solo())
    difference = (upcycled(ids).logits - dense(ids).logits).abs().max()
    assert 0 < difference < 1e-5


def test_copies_have_their_own_memory_unless_shared() -> None:
    own, shared = tiny("llama"), tiny("llama")
    split_model(own, build("ffn", {"name": "moe"}), Solo())
    split_model(shared, build("ffn", {"name": "moe", "share_weights": True}), Solo())
    for model, stride in ((own, 40 * 32), (shared, 0)):
        weight = model.model.layers[0].mlp.experts.down_proj
        assert weight.shape == (8, 32, 40)
        assert weight.stride(0) == stride


def test_parameters_count_one_copy_as_active() -> None:
    dense = build("ffn", {"name": "auto"}).apply(tiny("llama"), Solo()).parameters
    split = split_model(tiny("llama"), build("ffn", {"name": "moe", "experts": 4}), Solo())
    parameters = split.feed_forward.parameters
    assert dense.total == dense.active == parameters.active
    assert parameters.total == dense.total + 3 * 2 * 3 * 32 * 40


def test_router_spreads_inputs_with_a_large_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    sample, others = (torch.randn(n, 64, generator=generator) + 30 for n in (256, 512))
    router = CopyRouter(sample, 8, 2, seed=3)
    ids, weights = router(others)
    counts = ids[:, 0].bincount(minlength=8)
    assert counts.min() > 20
    assert counts.max() < 3 * 64
    assert torch.allclose(weights.sum(1), torch.ones(512))
    same, _ = CopyRouter(sample, 8, 2, seed=3)(others)
    other, _ = CopyRouter(sample, 8, 2, seed=4)(others)
    assert torch.equal(ids, same)
    assert not torch.equal(ids, other)


def test_a_single_choice_weighs_exactly_one() -> None:
    sample = torch.randn(16, 8)
    _, weights = CopyRouter(sample, 4, 1, seed=0)(sample)
    assert torch.equal(weights, torch.ones(16, 1))


def test_experts_of_a_checkpoint_stay_as_they_are() -> None:
    moe, ids = tiny("mixtral"), tokens(0, 1, 5)
    expected = tiny("mixtral")(ids).logits
    split = split_model(moe, build("ffn", {"name": "moe"}), Solo())
    assert isinstance(split.feed_forward.moe, MoE)
    assert split.notes == ()
    assert torch.allclose(moe(ids).logits, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"experts": 0}, r"ffn\.experts=0"),
        ({"top_k": 9}, r"ffn\.top_k=9: must be from 1 to ffn\.experts=8"),
        ({"expert": 4}, r"ffn\.expert.*did you mean ffn\.experts"),
    ],
)
def test_bad_options(node: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build("ffn", {"name": "moe", **node})


def test_models_without_gated_blocks_cannot_be_copied() -> None:
    with pytest.raises(UserError, match="ffn=moe: Phi3ForCausalLM has no gated feed-forward"):
        build("ffn", {"name": "moe"}).apply(tiny("phi3"), Solo())
