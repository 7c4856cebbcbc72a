import json
import shutil

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GenerationConfig

from draftmesh.registry import UserError
from draftmesh.stages.model import loading
from draftmesh.stages.model.hf import HuggingFace
from draftmesh.stages.model.loading import load_checkpoint
from draftmesh.stages.model.options import LoadOptions
from draftmesh.stages.model.tiny import Tiny


@pytest.fixture(scope="module")
def tiny():
    return Tiny(Tiny.Config(layers=2, attention="sdpa")).load()


@pytest.fixture(scope="module")
def saved(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "my-model"
    tiny.model.save_pretrained(folder)
    tiny.tokenizer.save_pretrained(folder)
    defaults = GenerationConfig(eos_token_id=[5, 6], do_sample=True, temperature=0.3, top_k=7)
    defaults.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def load(folder, **options):
    config = HuggingFace.Config(path=str(folder), **{"attention": "sdpa", **options})
    return HuggingFace(config).load()


def edit(path, **keys):
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def test_a_folder_gives_its_model_back(tiny, saved):
    checkpoint = load(saved, dtype="float32", device="cpu")
    ids = torch.tensor([tiny.tokenizer("some text")["input_ids"]])
    assert torch.equal(checkpoint.model(ids).logits, tiny.model(ids).logits)
    assert checkpoint.tokenizer("some text")["input_ids"] == ids[0].tolist()
    assert (checkpoint.name, checkpoint.path) == ("my-model", saved)
    assert checkpoint.eos_ids == (0, 5, 6)
    assert not checkpoint.model.training
    assert not any(p.requires_grad for p in checkpoint.model.parameters())


def test_sampling_defaults_do_not_leak(saved):
    generation = load(saved).model.generation_config
    assert generation.eos_token_id == [0, 5, 6]
    assert not generation.do_sample
    assert generation.temperature is None
    assert generation.top_k is None


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_dtype(saved, dtype):
    checkpoint = load(saved, dtype=dtype, device="cpu")
    assert {p.dtype for p in checkpoint.model.parameters()} == {getattr(torch, dtype)}


def test_attention_is_ours_unless_asked_otherwise(saved):
    assert load(saved, attention="auto").model.config._attn_implementation == "draftmesh"
    assert load(saved, attention="eager").model.config._attn_implementation == "eager"


def test_a_device_map_reaches_accelerate(saved, monkeypatch):
    asked = []
    real = AutoModelForCausalLM.from_pretrained

    def spy(*args, **kwargs):
        asked.append(kwargs["device_map"])
        return real(*args, **kwargs)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", spy)
    load(saved, device_map="balanced")
    load(saved, device="cpu")
    assert asked == ["balanced", None]


def test_nothing_is_printed(saved, capfd):
    load(saved)
    assert capfd.readouterr() == ("", "")


def test_a_model_without_tokenizer(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    checkpoint = load(folder)
    assert checkpoint.tokenizer is None
    assert checkpoint.eos_ids == (0, 5, 6)


def drop_tensor(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def truncate(count):
    def cut(folder):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:count])

    return cut


def replace_config(**keys):
    return lambda folder: (folder / "config.json").write_text(json.dumps(keys))


def shard(folder):
    index = {"weight_map": {"a": "model-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


BROKEN = {
    "no config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "bad config": (lambda f: (f / "config.json").write_text('{"a":'), "config.json cannot be read"),
    "list config": (lambda f: (f / "config.json").write_text("[]"), "holds no JSON object"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
    "lost shard": (shard, "lacks its weights file model-00001"),
    "cut in data": (truncate(200_000), "has 200000 of"),
    "cut in header": (truncate(100), "truncated"),
    "empty": (truncate(0), "truncated"),
    "no safetensors": (lambda f: (f / "model.safetensors").write_bytes(b"x" * 999), "truncated"),
    "unknown architecture": (replace_config(model_type="nope"), "`nope`"),
    "no architecture": (replace_config(), "model_type"),
    "encoder": (
        replace_config(model_type="bert", architectures=["BertForMaskedLM"]),
        "is no decoder-only causal LM but BertForMaskedLM",
    ),
    "encoder-decoder": (replace_config(model_type="t5"), "is no decoder-only causal LM but t5"),
    "vision": (replace_config(model_type="vit"), "is no decoder-only causal LM but vit"),
    "lacking tensor": (drop_tensor, "lacks 1 of the model's tensors, such as lm_head.weight"),
    "other shapes": (
        lambda f: edit(f / "config.json", vocab_size=300),
        r"has shape \(264, 64\), but its config.json makes it \(300, 64\)",
    ),
    "wrong type": (lambda f: edit(f / "config.json", hidden_size="x"), "hidden_size"),
    "bad tokenizer": (lambda f: (f / "tokenizer.json").write_text("{"), "cannot load"),
    "own code": (
        lambda f: edit(f / "config.json", model_type="x", auto_map={"AutoConfig": "m.C"}),
        "model.trust_remote_code=true",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_folder_is_explained_in_one_line(folder, case):
    damage, message = BROKEN[case]
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        load(folder)
    assert f"model.path={folder}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UserError, match=r"model\.path=.*nowhere is no folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"needs model\.path"):
        HuggingFace(HuggingFace.Config()).load()


def test_another_option_is_named_when_it_gave_the_source(tmp_path):
    with pytest.raises(UserError, match=r"^draft\.path=.*nowhere is no folder"):
        load_checkpoint(str(tmp_path / "nowhere"), "draft", LoadOptions(), "draft.path")


def test_a_hub_id_without_network(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "reachable", lambda: False)
    with pytest.raises(UserError, match=r"model\.path=org/model \(no such folder and the Hub") as e:
        load("org/model")
    assert "\n" not in str(e.value)


def test_option_values_are_checked(saved):
    for options in ({"attention": "flash"}, {"device_map": "all"}, {"dtype": "int4"}):
        ((key, value),) = options.items()
        with pytest.raises(UserError, match=f"model.{key}={value} is not one of"):
            load(saved, **options)


def test_a_hub_id_is_loaded_from_the_cache_without_network(saved, monkeypatch, tmp_path):
    repository = tmp_path / "models--org--model"
    commit = "0123456789abcdef0123456789abcdef01234567"
    shutil.copytree(saved, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(loading, "reachable", lambda: False)
    checkpoint = load("org/model")
    assert (checkpoint.name, checkpoint.eos_ids) == ("org/model", (0, 5, 6))
    assert checkpoint.path == repository / "snapshots" / commit
    assert checkpoint.tokenizer("ab")["input_ids"] == [3, 4]
    with pytest.raises(UserError, match="cannot load"):
        load("org/model", revision="v2")
