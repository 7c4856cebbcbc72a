"""Each public layout, written as its tools write it, against a slow forward of the same tensors."""

from dataclasses import replace

import pytest
import torch
from head_forward import Meaning, Slow, llama3_rope, plain_rope
from public_heads import (
    LLAMA,
    VOCAB,
    Maker,
    draft_ids,
    save_bin,
    save_safetensors,
    save_sharded,
    speculators,
    without,
)
from torch import Tensor

from draftmesh.registry.contracts.draft import Step
from draftmesh.stages.draft.eagle.loader import load_head
from draftmesh.stages.draft.eagle.runner import HeadRunner

IDS, CHAIN = [5, 17, 40, 8, 63, 22], [71, 9]
ROPE = plain_rope(10000.0)
ALL = torch.arange(VOCAB)
V1 = Meaning(ROPE, ALL, layer="layers.0", version=1)
V3 = Meaning(ROPE, draft_ids())
QKV = [f"layers.0.self_attn.{name}_proj" for name in "qkv"]


@pytest.fixture
def table(target) -> Tensor:
    return target.model.get_input_embeddings().weight


@pytest.fixture
def check(target, tmp_path):
    """check(file's tensors, their meaning, captured layers): the loaded head drafts the same."""

    def run(w, meaning, capture, embed=target.embed, lm_head=target.lm_head):
        head = load_head(tmp_path, target)
        assert head.config.capture == capture
        seen = torch.tensor([IDS[:-1]])
        layers = tuple(sorted(set(capture)))
        features = target.forward(seen, target.new_cache(1, 8), capture=layers).features
        expected = Slow(w, meaning, embed, lm_head).draft(
            IDS, [features[i][0] for i in capture], CHAIN
        )
        runner = HeadRunner(head, target, 1, 32)
        positions = torch.arange(len(IDS) - 1)[None]
        count = torch.tensor([len(IDS) - 1])
        runner.observe(Step(seen, count, positions, features, torch.tensor([IDS[-1]])))
        output = runner.output
        for depth, logits in enumerate(expected, 1):
            torch.testing.assert_close(runner.logits(output)[0, 0], logits, rtol=1e-6, atol=1e-6)
            if depth <= len(CHAIN):
                output = runner.follow(output, torch.tensor([CHAIN[depth - 1]]), depth)
        return head

    return run


def test_eagle_1_of_llama_2(tmp_path, check, table):
    """fc has a bias although no key says so; the embedding is stored as a copy."""
    maker = Maker("layers.0", kv_heads=4)
    w = maker.eagle1()
    maker.biases("fc")
    w["embed_tokens.weight"] = table.half()
    keys = {"num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_scaling": None}
    save_bin(tmp_path, LLAMA | keys | {"pretraining_tp": 1}, w)
    head = check(w, replace(V1, eps=1e-6), (6,))
    assert not head.config.own_embedding


def test_eagle_1_of_llama_3(tmp_path, check):
    w = Maker("layers.0").eagle1()
    save_bin(tmp_path, LLAMA | {"rope_theta": 500000.0, "bias": False}, w)
    check(w, replace(V1, rope=plain_rope(500000.0)), (6,))


def test_eagle_1_of_qwen_2(tmp_path, check):
    maker = Maker("layers.0", dtype=torch.bfloat16)
    w = maker.eagle1()
    maker.biases("fc", *QKV)
    save_safetensors(tmp_path, LLAMA | {"qkv_bias": True, "rope_theta": 1e6}, w)
    check(w, replace(V1, rope=plain_rope(1e6)), (6,))


def test_eagle_1_converted_by_speculators(tmp_path, check):
    maker = Maker("transformer", "fusion_fc")
    w = maker.eagle1()
    maker.biases("fusion_fc")
    layer = without(LLAMA, "architectures", "torch_dtype", "transformers_version")
    keys = {
        "architectures": ["EagleSpeculator", "LlamaDecoderLayer"],
        "speculators_model_type": "eagle",
        "fusion_bias": True,
        "layernorms": False,
        "transformer_layer_architecture": "LlamaDecoderLayer",
    }
    save_safetensors(tmp_path, speculators(layer, **keys), w)
    check(w, replace(V1, layer="transformer", fc="fusion_fc"), (6,))


def test_eagle_1_with_tables_of_its_own(tmp_path, check):
    maker = Maker("layers.0")
    w = maker.eagle1()
    maker.draw("embed_tokens.weight", VOCAB, 32)
    maker.draw("lm_head.weight", VOCAB, 32)
    save_bin(tmp_path, LLAMA | {"bias": False}, w)
    own, lm_head = w["embed_tokens.weight"].double(), w["lm_head.weight"].double()
    check(w, V1, (6,), lambda ids: own[ids], lambda x: x @ lm_head.T)


def test_eagle_3(tmp_path, check):
    """The published head of Llama 3.1: no rope, no embedding."""
    w = Maker().eagle3()
    save_bin(tmp_path, LLAMA | {"draft_vocab_size": 60}, w)
    check(w, V3, (2, 3, 3))


def test_eagle_3_of_the_whole_vocabulary(tmp_path, check):
    """The head of Vicuna 13B has no d2t and t2d."""
    w = Maker(kv_heads=4).eagle3(VOCAB)
    save_bin(tmp_path, LLAMA | {"draft_vocab_size": VOCAB, "num_key_value_heads": 4}, w)
    check(w, replace(V3, ids=ALL), (2, 3, 3))


def test_eagle_3_narrower_than_the_model(tmp_path, check):
    maker = Maker(hidden=24, heads=3, kv_heads=1)
    w = maker.eagle3()
    maker.draw("embed_tokens.weight", VOCAB, 24)
    keys = {"hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 1}
    save_bin(tmp_path, LLAMA | keys | {"draft_vocab_size": 60, "target_hidden_size": 32}, w)
    own = w["embed_tokens.weight"].double()
    check(w, V3, (2, 3, 3), lambda ids: own[ids])


def test_speculators_eagle_3(tmp_path, check, table):
    """As Red Hat's: norm_before_residual, positions from 1, Llama 3.1's rope scaling."""
    w = Maker("layers.0", dtype=torch.bfloat16).eagle3()
    w["embed_tokens.weight"] = table.bfloat16()
    scaling = {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
        "rope_type": "llama3",
    }
    layer = without(LLAMA, "architectures") | {
        "attention_bias": False,
        "head_dim": 8,
        "rope_scaling": scaling,
        "rope_theta": 500.0,
    }
    ids = {"eagle_aux_hidden_state_layer_ids": [1, 3, 5]}
    save_safetensors(tmp_path, speculators(layer, norm_before_residual=True, **ids), w)
    rope = llama3_rope(500.0, 8.0, 1.0, 4.0, 32)
    meaning = replace(V3, layer="layers.0", rope=rope, first=1, residual_normed=True)
    head = check(w, meaning, (1, 3, 5))
    assert not head.config.own_embedding
    assert not torch.allclose(rope, plain_rope(500.0))


def test_speculators_eagle_3_with_an_input_norm(tmp_path, check):
    """norm_before_fc and norm_output (fed back normed), a Qwen3 layer, shards, rope_parameters."""
    maker = Maker("layers.0", head_dim=16, dtype=torch.bfloat16)
    w = maker.eagle3()
    maker.draw("input_norm.weight", 96)
    maker.draw("layers.0.self_attn.q_norm.weight", 16)
    maker.draw("layers.0.self_attn.k_norm.weight", 16)
    maker.draw("verifier_lm_head.weight", 60, 32)
    layer = without(LLAMA, "architectures", "torch_dtype") | {
        "model_type": "qwen3",
        "head_dim": 16,
        "rope_parameters": {"rope_theta": 3000.0, "rope_type": "default"},
    }
    flags = {"norm_before_residual": True, "norm_before_fc": True, "norm_output": True}
    keys = {"architectures": ["Eagle3DraftModel"], "fc_norm": False}
    save_sharded(tmp_path, speculators(layer, **flags, **keys), w)
    meaning = Meaning(
        plain_rope(3000.0, 16),
        draft_ids(),
        layer="layers.0",
        head_dim=16,
        first=1,
        residual_normed=True,
        feed_normed=True,
    )
    check(w, meaning, (2, 3, 3))


def test_speculators_eagle_3_1(tmp_path, check):
    """A norm per captured layer, here four of them, and attention biases."""
    maker = Maker("layers.0", sources=4)
    w = maker.eagle3()
    for layer in range(4):
        maker.draw(f"fc_norm.{layer}.weight", 32)
    maker.biases(*QKV, "layers.0.self_attn.o_proj")
    layer = without(LLAMA, "architectures") | {"attention_bias": True}
    ids = {"eagle_aux_hidden_state_layer_ids": [1, 2, 4, 5]}
    keys = {"fc_norm": True, "norm_before_fc": False, "norm_output": False, **ids}
    save_safetensors(tmp_path, speculators(layer, **keys), w)
    check(w, replace(V3, layer="layers.0", first=1), (1, 2, 4, 5))


SPECFORGE = LLAMA | {
    "architectures": ["LlamaForCausalLMEagle3"],
    "attention_bias": False,
    "draft_vocab_size": 60,
    "head_dim": 16,
    "rope_scaling": None,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.53.2",
}


def test_specforge_for_transformers(tmp_path, check, table):
    """The embedding is stored; layer ids mean a layer's output; rope is said twice."""
    w = Maker(head_dim=16, dtype=torch.bfloat16).eagle3()
    w["embed_tokens.weight"] = table.bfloat16()
    keys = {
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": [0, 2, 3],
            "use_aux_hidden_state": True,
        },
        "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"},
        "rope_theta": 1e6,
    }
    save_safetensors(tmp_path, SPECFORGE | keys, w)
    rope = plain_rope(1e6, 16)
    check(w, replace(V3, rope=rope, head_dim=16), (1, 3, 4))


def test_specforge_eagle_3_1_for_sglang(tmp_path, check):
    """norm_output here is the norm before the LM head: what is fed back stays as it is."""
    maker = Maker(head_dim=16)
    w = maker.eagle3()
    for layer in range(3):
        maker.draw(f"fc_norm.{layer}.weight", 32)
    keys = {"fc_norm": True, "norm_output": True, "rope_theta": 1e6}
    save_safetensors(tmp_path, SPECFORGE | keys, w)
    check(w, replace(V3, rope=plain_rope(1e6, 16), head_dim=16), (2, 3, 3))


def test_specforge_without_a_norm_before_the_lm_head(tmp_path, check):
    w = Maker(head_dim=16).eagle3()
    save_safetensors(tmp_path, SPECFORGE | {"norm_output": False}, w)
    meaning = replace(V3, rope=plain_rope(1e4, 16), head_dim=16, logits_normed=False)
    check(w, meaning, (2, 3, 3))


@pytest.mark.parametrize("prefix", ["model.", "draft_model.", "module.model."])
def test_prefixes(tmp_path, check, prefix):
    """NeMo Automodel saves model.fc and model.layers.0."""
    w = Maker("layers.0").eagle3()
    named = {
        name if name in ("d2t", "t2d", "lm_head.weight") else prefix + name: value
        for name, value in w.items()
    }
    save_safetensors(tmp_path, LLAMA | {"draft_vocab_size": 60}, named)
    check(w, replace(V3, layer="layers.0"), (2, 3, 3))


def test_an_embedding_of_its_own(tmp_path, check):
    maker = Maker()
    w = maker.eagle3()
    maker.draw("embed_tokens.weight", VOCAB, 32)
    save_safetensors(tmp_path, LLAMA | {"draft_vocab_size": 60}, w)
    own = w["embed_tokens.weight"].double()
    check(w, V3, (2, 3, 3), lambda ids: own[ids])


TABLES = {
    "absolute": lambda d2t, t2d, ids: {"d2t": ids, "t2d": t2d},
    "absolute alone": lambda d2t, t2d, ids: {"d2t": ids},
    "offsets alone, 32 bits": lambda d2t, t2d, ids: {"d2t": d2t.int()},
    "a mask alone, in bytes": lambda d2t, t2d, ids: {"t2d": t2d.byte()},
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_the_draft_vocabulary(tmp_path, check, kind):
    w = Maker().eagle3()
    d2t, t2d = w.pop("d2t"), w.pop("t2d")
    save_safetensors(
        tmp_path, LLAMA | {"draft_vocab_size": 60}, w | TABLES[kind](d2t, t2d, draft_ids())
    )
    check(w, V3, (2, 3, 3))
