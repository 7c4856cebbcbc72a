"""Every public layout is read, and computes what its tensors say."""

import pytest
import torch
from built import built
from harness import tiny, tokens
from medusa_files import TOKEN_MAP, VOCAB, blocks, logits, merged, random, v1, v2, vllm, write
from medusa_target import LAYERS, make_target
from safetensors.torch import load_file

from draftmesh.registry.contracts.draft import Step
from draftmesh.stages.draft.medusa.heads import MedusaHeads
from draftmesh.stages.draft.medusa.layouts import save_medusa, save_vllm
from draftmesh.stages.draft.medusa.loader import load_heads
from draftmesh.stages.draft.medusa.runner import MedusaRunner

MEDUSA, VLLM = "{h}.{j}.linear", "blocks.{h}.layers.{j}"
STATES = random(2, 4, 32, seed=77)
"""The target's last hidden states of two rows; the second row's third one counts."""


def computed(folder, target):
    runner = MedusaRunner(load_heads(folder, target), target)
    runner.start(2)
    lengths = torch.tensor([4, 3])
    nothing = torch.zeros(2, 4, dtype=torch.long)
    runner.observe(Step(nothing, lengths, nothing, {LAYERS: STATES}, nothing[:, 0]))
    return runner.logits(runner.heads.count)


def check(found, state, name, lm_head_of, heads, tokens=None):
    """Against the slow forward; -inf wherever the heads have no token."""
    assert found.shape == (2, heads, VOCAB)
    tokens = torch.arange(VOCAB) if tokens is None else tokens
    for row, hidden in enumerate((STATES[0, 3], STATES[1, 2])):
        for head in range(heads):
            wanted = torch.full((VOCAB,), -torch.inf, dtype=torch.float64)
            wanted[tokens] = logits(state, hidden, head, name, lm_head_of(head))
            torch.testing.assert_close(found[row, head], wanted)


@pytest.mark.parametrize("layers", [1, 2])
def test_v1(tmp_path, target, layers):
    state = v1(tmp_path, layers=layers)
    check(computed(tmp_path, target), state, MEDUSA, lambda h: state[f"{h}.{layers}.weight"], 5)


def test_v2_uses_the_targets_lm_head(tmp_path, target):
    state = v2(tmp_path)
    lm_head = target.model.lm_head.weight
    check(computed(tmp_path, target), state, MEDUSA, lambda h: lm_head, 3)


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_heads_merged_into_their_model(tmp_path, target, file):
    state = merged(tmp_path, target.model, file)
    check(computed(tmp_path, target), state, MEDUSA, lambda h: state[f"{h}.1.weight"], 3)


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_vllm(tmp_path, target, bias, shared, reduced):
    prefix = "medusa_heads." if bias else ""
    state = vllm(tmp_path, bias=bias, shared=shared, reduced=reduced, prefix=prefix)

    def lm_head(head):
        return state["lm_head.weight" if shared else f"lm_heads.{head}.weight"]

    tokens = TOKEN_MAP if reduced else None
    check(computed(tmp_path, target), state, VLLM, lm_head, 3, tokens)


def test_vllm_picks_rows_of_whole_lm_heads(tmp_path, target):
    state = vllm(tmp_path, bias=True, shared=True, reduced=False)
    config = {"vocab_size": VOCAB, "truncated_vocab_size": len(TOKEN_MAP)}
    write(tmp_path, config, state | {"token_map": TOKEN_MAP}, "model.safetensors")
    rows = state["lm_head.weight"][TOKEN_MAP]
    check(computed(tmp_path, target), state, VLLM, lambda h: rows, 3, TOKEN_MAP)


def test_only_token_ids_of_a_shared_lm_head_are_stored(tmp_path, target):
    state = blocks(MEDUSA, 2, 1)
    write(tmp_path, {}, state | {"token_map": TOKEN_MAP}, "medusa_lm_head.safetensors")
    rows = target.model.lm_head.weight[TOKEN_MAP]
    check(computed(tmp_path, target), state, MEDUSA, lambda h: rows, 2, TOKEN_MAP)
    assert load_heads(tmp_path, target).lm_heads is None


def test_a_models_own_scaling_reaches_the_reduced_lm_head(tmp_path):
    target = make_target()
    target.config.logit_scale, target.config.final_logit_softcapping = 3.0, 2.0
    head = target.model.lm_head
    head.bias = torch.nn.Parameter(random(VOCAB, seed=5), requires_grad=False)
    write(tmp_path, {}, blocks(MEDUSA, 2, 1), "medusa_lm_head.safetensors")
    whole = computed(tmp_path, target)
    state = blocks(MEDUSA, 2, 1) | {"token_map": TOKEN_MAP}
    write(tmp_path, {}, state, "medusa_lm_head.safetensors")
    torch.testing.assert_close(computed(tmp_path, target)[..., TOKEN_MAP], whole[..., TOKEN_MAP])
    assert whole.abs().max() <= 2


HEADS = {
    "v1": (3, True, VOCAB, None),
    "v2": (0, True, VOCAB, None),
    "reduced": (0, True, 0, TOKEN_MAP),
    "own reduced": (3, False, len(TOKEN_MAP), TOKEN_MAP),
    "one stored": (1, True, len(TOKEN_MAP), TOKEN_MAP),
}


@pytest.mark.parametrize("layout", ["medusa", "vllm"])
@pytest.mark.parametrize("kind", HEADS)
def test_what_is_written_computes_the_same(tmp_path, target, kind, layout):
    lm_heads, bias, rows, token_map = HEADS[kind]
    heads = MedusaHeads(
        random(2, 3, 32, 32, seed=1),
        random(2, 3, 32, seed=2) if bias else None,
        random(lm_heads, rows, 32, seed=3) if lm_heads else None,
        token_map,
        VOCAB,
    )
    lm_head = target.model.lm_head.weight
    shared = lm_head if token_map is None else lm_head[token_map]
    extra = {"target": "tiny"}
    if layout == "medusa":
        save_medusa(heads, tmp_path, torch.float64, "tiny", extra)
    else:
        save_vllm(heads, tmp_path, torch.float64, shared, extra)
    runner = MedusaRunner(heads, target)
    runner.start(2)
    runner.hidden = torch.stack([STATES[0, 3], STATES[1, 2]])
    torch.testing.assert_close(computed(tmp_path, target), runner.logits(3))


def test_written_names_are_the_published_ones(tmp_path):
    heads = MedusaHeads.fresh(2, 1, 32, VOCAB, TOKEN_MAP)
    save_medusa(heads, tmp_path / "v2", torch.float32, "tiny", {})
    names = set(load_file(tmp_path / "v2" / "medusa_lm_head.safetensors"))
    assert names == {f"{h}.0.linear.{k}" for h in (0, 1) for k in ("weight", "bias")} | {
        "token_map"
    }
    save_vllm(heads, tmp_path / "vllm", torch.float32, random(len(TOKEN_MAP), 32, seed=1), {})
    names = set(load_file(tmp_path / "vllm" / "model.safetensors"))
    assert {"blocks.1.layers.0.bias", "lm_head.weight", "token_map"} < names


def test_fresh_heads_hand_the_hidden_state_on():
    heads = MedusaHeads.fresh(2, 3, 32, VOCAB, None).double()
    assert torch.equal(heads.states(STATES[0], 2), STATES[0].expand(2, -1, -1))


def test_a_merged_checkpoint_is_model_and_draft_at_once(tmp_path):
    folder, source = tmp_path / "merged", tiny("llama").checkpoint
    merged(folder, source.model)
    source.tokenizer.save_pretrained(folder)
    same = (f"model.path={folder}", f"draft.path={folder}", "draft.k=3")
    pipeline = built(
        tmp_path / "run",
        "model=hf",
        "draft=medusa",
        *same,
        defaults=("model.dtype=float64", "tracking=none", "data.limit=2", "max_new_tokens=8"),
    )
    ours = pipeline.generate(pipeline.engine, pipeline.requests())
    plain = pipeline.generate(pipeline.plain, pipeline.requests())
    assert tokens(ours) == tokens(plain)
    assert ours.counters.drafted > 0
