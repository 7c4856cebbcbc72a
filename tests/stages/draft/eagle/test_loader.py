import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from draftmesh.registry import UserError
from draftmesh.stages.draft.eagle.loader import load_head
from draftmesh.stages.draft.eagle.safeai import save_head, tensors
from draftmesh.stages.draft.eagle.speculators import save_speculators
from draftmesh.stages.draft.shipped import shipped_head


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
        (1, {"fc_bias": True, "qkv_bias": True}),
        (3, {}),
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


@pytest.mark.parametrize("changes", [{}, {"residual_normed": True, "feed_normed": True}])
def test_speculators_round_trip(tmp_path, target, make_head, changes):
    head = make_head(3, **changes)
    table = target.model.get_input_embeddings().weight
    save_speculators(head, tmp_path, torch.float64, "tiny", table, 3)
    loaded = load_head(tmp_path, target)
    assert same(loaded, head)
    assert loaded.config == head.config


def test_specforge_layer_ids_and_norm_output(tmp_path, target, make_head):
    save_head(make_head(3), tmp_path, torch.float64)
    raw = json.loads((tmp_path / "config.json").read_text())
    del raw["eagle_aux_hidden_state_layer_ids"]
    raw |= {
        "architectures": ["LlamaForCausalLMEagle3"],
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 3]},
        "norm_output": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 7000.0},
    }
    del raw["rope_theta"]
    (tmp_path / "config.json").write_text(json.dumps(raw))
    config = load_head(tmp_path, target).config
    assert config.capture == (1, 2, 4)
    assert not config.feed_normed
    assert config.rope_theta == 7000.0


def test_prefixes_torch_files_and_stored_embeddings(tmp_path, target, make_head):
    head = make_head(3)
    save_head(head, tmp_path, torch.float64)
    (tmp_path / "model.safetensors").unlink()
    state = {f"model.{k.replace('midlayer.', 'layers.0.')}": v for k, v in tensors(head).items()}
    state["model.embed_tokens.weight"] = torch.zeros(96, 32)
    torch.save(state, tmp_path / "pytorch_model.bin")
    assert same(load_head(tmp_path, target), head)


def test_a_published_config_without_rope_means_10000(tmp_path, target, make_head):
    save_head(make_head(3), tmp_path, torch.float64)
    raw = json.loads((tmp_path / "config.json").read_text())
    for key in ("rope_theta", "eagle_aux_hidden_state_layer_ids", "max_position_embeddings"):
        del raw[key]
    (tmp_path / "config.json").write_text(json.dumps(raw))
    config = load_head(tmp_path, target).config
    assert (config.rope_theta, config.capture, config.max_position) == (1e4, (2, 3, 3), 2048)


def cut(file):
    file.write_bytes(file.read_bytes()[:-400])


def without(name):
    def change(file):
        state = load_file(file)
        del state[name]
        save_file(state, file)

    return change


BREAKAGES = {
    "damaged or incomplete": lambda f: cut(f / "model.safetensors"),
    "neither model.safetensors nor": lambda f: (f / "model.safetensors").unlink(),
    "no config.json": lambda f: (f / "config.json").unlink(),
    "cannot be read": lambda f: (f / "config.json").write_text("{"),
    "'fc.weight' is missing": lambda f: without("fc.weight")(f / "model.safetensors"),
    "lacks norm.weight": lambda f: without("norm.weight")(f / "model.safetensors"),
    "hidden size 32 and 128 tokens, the model has hidden size 32 and 96": lambda f: edit(
        f, vocab_size=128
    ),
    "layer 20 of a model with 6 layers": lambda f: edit(
        f, eagle_aux_hidden_state_layer_ids=[2, 20, 40]
    ),
    "rope_type=llama3": lambda f: edit(f, rope_scaling={"rope_type": "llama3"}),
    "speculators dflash head": lambda f: edit(f, speculators_model_type="dflash"),
}


@pytest.mark.parametrize("message", BREAKAGES)
def test_a_broken_or_foreign_head_is_refused(tmp_path, target, make_head, message):
    save_head(make_head(3), tmp_path, torch.float64)
    BREAKAGES[message](tmp_path)
    with pytest.raises(UserError, match=r"draft\.path") as caught:
        load_head(tmp_path, target)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_parts_are_refused(tmp_path, target, make_head):
    save_head(make_head(3), tmp_path, torch.float64)
    state = load_file(tmp_path / "model.safetensors")
    state["layers.1.mlp.up_proj.weight"] = torch.zeros(2, 2)
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"unknown tensor layers\.1"):
        load_head(tmp_path, target)


def test_a_model_without_a_shipped_head(tmp_path):
    with pytest.raises(UserError, match=r"model other.*draft\.path"):
        shipped_head("eagle", "other", None)
    with pytest.raises(UserError, match="no such folder"):
        shipped_head("eagle", "other", str(tmp_path / "nothing"))
