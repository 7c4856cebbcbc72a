import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from draftmesh.registry import UserError
from draftmesh.stages.draft.eagle.loader import load_head
from draftmesh.stages.draft.eagle.safeai import save_head
from draftmesh.stages.draft.eagle.speculators import save_speculators

LINEAR = {"rope_type": "linear", "factor": 2.0}


def same(a, b):
    first, second = a.state_dict(), b.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def edit(folder, **keys):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))


@pytest.mark.parametrize(
    ("version", "changes"),
    [
        (1, {}),
        (1, {"fc_bias": True, "qkv_bias": True, "own_lm_head": True}),
        (3, {}),
        (3, {"fc_norm": True, "residual_normed": True, "head_normed": False, "qk_norm": True}),
        (3, {"input_norm": True, "own_embedding": True, "rope_scaling": LINEAR, "o_bias": True}),
        (3, {"draft_vocab": 96, "kv_heads": 4, "capture": (1, 2, 4), "rope_theta": 5e5}),
    ],
)
def test_safeai_round_trip(tmp_path, target, make_head, version, changes):
    head = make_head(version, **changes)
    save_head(head, tmp_path, torch.float64)
    loaded = load_head(tmp_path, target)
    assert same(loaded, head)
    assert loaded.config == head.config


def test_version_1_file_has_the_published_names(tmp_path, make_head):
    save_head(make_head(1), tmp_path, torch.float32)
    names = set(load_file(tmp_path / "model.safetensors"))
    assert {"fc.weight", "layers.0.self_attn.q_proj.weight"} < names
    assert not any("input_layernorm" in n or n.startswith(("midlayer", "norm")) for n in names)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"residual_normed": True, "feed_normed": True},
        {"fc_norm": True, "qk_norm": True, "qkv_bias": True, "rope_scaling": LINEAR},
        {"input_norm": True, "own_embedding": True},
    ],
)
def test_speculators_round_trip(tmp_path, target, make_head, changes):
    head = make_head(3, **changes)
    table = target.model.get_input_embeddings().weight
    save_speculators(head, tmp_path, torch.float64, "tiny", table, 3)
    loaded = load_head(tmp_path, target)
    assert same(loaded, head)
    assert loaded.config == head.config


def cut(file):
    file.write_bytes(file.read_bytes()[:-400])


def without(name):
    def change(file):
        state = load_file(file)
        del state[name]
        save_file(state, file)

    return change


def with_tensor(name, value):
    def change(folder):
        file = folder / "model.safetensors"
        save_file(load_file(file) | {name: value}, file)

    return change


def half_sharded(folder):
    weights = {"fc.weight": "model-1.safetensors", "norm.weight": "model-2.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")


def as_pickle(content):
    def change(folder):
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(content)

    return change


BREAKAGES = {
    "damaged or incomplete": lambda f: cut(f / "model.safetensors"),
    "model.safetensors is damaged or incomplete": lambda f: (f / "model.safetensors").write_bytes(
        b""
    ),
    "model-2.safetensors is damaged or incomplete": half_sharded,
    "pytorch_model.bin is damaged or incomplete": as_pickle(b"cut off"),
    "neither model.safetensors nor": lambda f: (f / "model.safetensors").unlink(),
    "no config.json": lambda f: (f / "config.json").unlink(),
    "cannot be read": lambda f: (f / "config.json").write_text("{"),
    "not an object": lambda f: (f / "config.json").write_text("[]"),
    "'num_attention_heads' is missing": lambda f: (f / "config.json").write_text("{}"),
    "does not describe an EAGLE head": lambda f: edit(f, num_attention_heads="four"),
    "reads 96 values of 5 layers": lambda f: edit(
        f, eagle_aux_hidden_state_layer_ids=[1, 2, 3, 4, 5]
    ),
    "hidden_act=wavy": lambda f: edit(f, hidden_act="wavy"),
    "'fc.weight' is missing": lambda f: without("fc.weight")(f / "model.safetensors"),
    "lacks norm.weight": lambda f: without("norm.weight")(f / "model.safetensors"),
    "lacks input_norm.weight": lambda f: edit(f, norm_before_fc=True),
    "lacks fc_norm.0.weight": lambda f: edit(f, fc_norm=True),
    "hidden size 32 and 128 tokens, the model has hidden size 32 and 96": lambda f: edit(
        f, vocab_size=128
    ),
    "hidden size 48 and 96 tokens, the model has hidden size 32 and 96": with_tensor(
        "fc.weight", torch.zeros(32, 144)
    ),
    "layer 20 of a model with 6 layers": lambda f: edit(
        f, eagle_aux_hidden_state_layer_ids=[2, 20, 40]
    ),
    "q_proj.weight is [32, 16]": with_tensor(
        "midlayer.self_attn.q_proj.weight", torch.zeros(32, 16)
    ),
    "needs embed_tokens.weight of its own": with_tensor("fc.weight", torch.zeros(24, 96)),
    "embed_tokens.weight is [90, 32]": with_tensor("embed_tokens.weight", torch.zeros(90, 32)),
    "d2t and t2d do not name 60 of the model's 96 tokens": with_tensor(
        "t2d", torch.ones(96, dtype=torch.bool)
    ),
    "norm.weight holds NaN": with_tensor("norm.weight", torch.full((32,), torch.nan)),
    "quantised heads cannot be used": with_tensor(
        "midlayer.mlp.down_proj.weight", torch.zeros(32, 40, dtype=torch.int8)
    ),
    "rope cannot be used: Missing required keys": lambda f: edit(
        f, rope_scaling={"rope_type": "llama3"}
    ),
    "rope_type=longrope; known are linear": lambda f: edit(f, rope_scaling={"type": "longrope"}),
    "speculators dflash head": lambda f: edit(f, speculators_model_type="dflash"),
    "unknown tensor layers.1.mlp": with_tensor("layers.1.mlp.up_proj.weight", torch.zeros(2, 2)),
}


@pytest.mark.parametrize("message", BREAKAGES)
def test_a_broken_or_foreign_head_is_refused(tmp_path, target, make_head, message):
    save_head(make_head(3), tmp_path, torch.float64)
    BREAKAGES[message](tmp_path)
    with pytest.raises(UserError, match=r"draft\.path") as caught:
        load_head(tmp_path, target)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_version_1_head_that_lacks_its_bias(tmp_path, target, make_head):
    save_head(make_head(1), tmp_path, torch.float64)
    edit(tmp_path, bias=True)
    with pytest.raises(UserError, match=r"lacks fc\.bias"):
        load_head(tmp_path, target)


def test_code_in_a_pickle_is_not_run(tmp_path, target, make_head):
    save_head(make_head(1), tmp_path, torch.float64)
    as_pickle(pickle.dumps({"fc.weight": Exploit(tmp_path / "touched")}, 2))(tmp_path)
    with pytest.raises(UserError, match="damaged or incomplete"):
        load_head(tmp_path, target)
    assert not (tmp_path / "touched").exists()


class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (type(self.path).touch, (self.path,))


def test_loading_leaves_the_global_generator_alone(tmp_path, target, make_head):
    save_head(make_head(3), tmp_path, torch.float64)
    before = torch.get_rng_state()
    load_head(tmp_path, target)
    assert torch.equal(before, torch.get_rng_state())
