"""What the probe says of a model must be true."""

import pytest
import torch
from harness import SPECULATIVE, tiny
from transformers import AutoConfig, AutoModelForCausalLM

from draftmesh.registry import UserError
from draftmesh.stages.model import attention
from draftmesh.stages.model.masks import Masks
from draftmesh.stages.model.probe import examine, probe


@pytest.mark.parametrize("arch", SPECULATIVE)
def test_trees_work_everywhere_and_resuming_but_for_added_positions(arch):
    found = probe(tiny(arch).target)
    assert found.obstacle is None
    assert found.trees
    # GPT-2 adds its position embeddings to whatever enters the first layer.
    assert found.resume == (arch != "gpt2")


@pytest.mark.parametrize("arch", ["llama", "deepseek_v3"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rounding_is_no_failure(arch, dtype):
    found = examine(tiny(arch, dtype=dtype).checkpoint.model)
    assert found.trees
    assert found.resume


@pytest.mark.parametrize(
    ("arch", "options", "why"),
    [
        ("mamba", {}, "recurrent layers"),
        ("qwen3_next", {}, "recurrent layers"),
        ("bloom", {}, "cannot reach it"),
        ("llama", {"attention": "sdpa"}, "model.attention=sdpa"),
        ("llama", {"attention": "eager"}, "model.attention=eager"),
        ("llama", {"extra": {"layer_types": ["chunked_attention"] * 3}}, "chunked_attention"),
    ],
)
def test_models_that_cannot_draft_say_why(arch, options, why):
    frozen = {key: value for key, value in options.items() if key != "extra"}
    model = tiny(arch, lambda model: None, **frozen).checkpoint.model
    if "extra" in options:
        model = built("llama")
        model.config.layer_types = options["extra"]["layer_types"]
    found = examine(model)
    assert not found.trees
    assert not found.resume
    assert why in found.obstacle
    assert "\n" not in found.obstacle


def built(model_type, **keys):
    """A small model straight from a config, with our attention."""
    config = AutoConfig.for_model(
        model_type,
        vocab_size=96,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        **keys,
    )
    return AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation=attention.NAME
    ).eval()


def test_a_window_that_never_reaches_the_attention_is_found():
    small = {"moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4}
    windowed = built("qwen2_moe", use_sliding_window=True, sliding_window=8, **small)
    assert "look back" in examine(windowed).obstacle
    assert examine(built("qwen2_moe", **small)).obstacle is None


def test_a_window_as_long_as_the_context_is_none():
    small = {"moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4}
    wide = built("qwen2_moe", use_sliding_window=True, sliding_window=128, **small)
    assert examine(wide).obstacle is None


@pytest.mark.parametrize("filling", [0.0, torch.nan])
def test_wrong_attention_is_refused(filling, monkeypatch):
    def everything(self, window, dtype):
        rows, tokens, _ = self.related.shape
        return torch.full((rows, 1, tokens, self.columns), filling, dtype=dtype)

    monkeypatch.setattr(Masks, "_build", everything)
    with pytest.raises(UserError, match="does not decode correctly") as caught:
        probe(tiny("llama").target)
    assert "model.attention" in str(caught.value)


def test_trees_that_go_wrong_are_noticed(monkeypatch):
    def chains_only(parents):
        size = parents.shape[1]
        return torch.ones(size, size).tril().bool()[None].expand(len(parents), -1, -1)

    monkeypatch.setattr("draftmesh.stages.model.target.ancestors", chains_only)
    found = probe(tiny("llama").target)
    assert not found.trees
    assert found.resume
