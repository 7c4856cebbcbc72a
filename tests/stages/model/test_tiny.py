import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.model.architectures import ARCHITECTURES
from draftmesh.stages.model.tiny import Tiny

EXPERTS = {"mixtral", "qwen3_moe", "olmoe", "deepseek_v3", "gpt_oss", "qwen3_next"}


def load(arch="llama", attention="eager", **options):
    return Tiny(Tiny.Config(arch=arch, attention=attention, **options)).load()


def logits(checkpoint, ids):
    with torch.inference_mode():
        return checkpoint.model(torch.tensor([ids])).logits[0]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_architecture_runs_and_has_favourites(arch):
    checkpoint = load(arch, dtype="float64")
    ids = checkpoint.tokenizer("Hello, wörld!")["input_ids"]
    top = logits(checkpoint, ids).double().softmax(-1).max(-1).values
    assert checkpoint.name == f"tiny_{arch}"
    assert checkpoint.path is None
    assert checkpoint.eos_ids == (0,)
    assert checkpoint.model.dtype == torch.float64
    assert not checkpoint.model.training
    assert not any(p.requires_grad for p in checkpoint.model.parameters())
    assert 0.2 < top.mean() < 0.9
    changed = logits(checkpoint, [ids[0], 9, *ids[2:]])
    assert (changed[1] - logits(checkpoint, ids)[1]).abs().max() > 0.1


@pytest.mark.parametrize("arch", sorted(EXPERTS))
def test_experts_differ(arch):
    config = load(arch).model.config
    counts = [getattr(config, key, None) for key in ("num_local_experts", "num_experts")]
    assert 8 in [*counts, getattr(config, "n_routed_experts", None)]
    stacked = [p for p in load(arch).model.parameters() if p.ndim == 3 and p.shape[0] == 8]
    assert stacked
    assert all((p[0] - p[1]).abs().max() > 0.1 for p in stacked)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_weights_depend_on_the_seed_alone(arch):
    torch.manual_seed(1)
    first = load(arch, dtype="float64").model.state_dict()
    torch.manual_seed(2)
    again = load(arch, dtype="float64").model.state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_weights_are_the_same_in_every_dtype_and_others_with_another_seed():
    first = load(dtype="float64").model.state_dict()
    single = load(dtype="float32").model.state_dict()
    other = load(dtype="float64", seed=1).model.state_dict()
    assert all(torch.equal(first[key].float(), single[key]) for key in first)
    assert not any(torch.equal(first[key], other[key]) for key in first)


def test_loading_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load()
    assert torch.equal(torch.rand(3), expected)


def test_tied_weights_stay_tied():
    model = load("qwen3", extra={"tie_word_embeddings": True}).model
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert load("qwen3").model.lm_head.weight is not load("qwen3").model.model.embed_tokens.weight


def test_sliding_window_hides_what_is_far():
    ids = list(range(2, 22))
    near, far = [*ids[:-3], 9, *ids[-2:]], [9, *ids[1:]]
    windowed = load("mistral", layers=1, dtype="float64")
    last = logits(windowed, ids)[-1]
    assert torch.equal(logits(windowed, far)[-1], last)
    assert (logits(windowed, near)[-1] - last).abs().max() > 0.01
    wide = load("mistral", layers=1, dtype="float64", sliding_window=64)
    assert (logits(wide, far)[-1] - logits(wide, ids)[-1]).abs().max() > 1e-6


def test_sizes_are_as_asked():
    config = load(layers=3, heads=6, kv_heads=3, hidden_size=48, context=99, vocab_size=40).model
    config = config.config
    assert (config.num_hidden_layers, config.num_attention_heads) == (3, 6)
    assert (config.num_key_value_heads, config.head_dim) == (3, 8)
    assert (config.max_position_embeddings, config.vocab_size) == (99, 40)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"arch": "lama"}, "model.arch=lama"),
        ({"attention": "flash"}, "model.attention=flash"),
        ({"dtype": "int8"}, "model.dtype=int8"),
        ({"vocab_size": 3}, "model.vocab_size=3"),
        ({"hidden_size": 30}, "model.arch=llama"),
        ({"arch": "mamba", "attention": "draftmesh"}, "model.attention=draftmesh"),
    ],
)
def test_impossible_options_are_named(options, named):
    with pytest.raises(UserError, match=named) as caught:
        load(**options)
    assert "\n" not in str(caught.value)
