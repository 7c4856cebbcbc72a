"""Files that are damaged, incomplete or of another model are refused with one line."""

import json
from dataclasses import replace

import pytest
import torch
from medusa_files import TOKEN_MAP, blocks, merged, own, v1, v2, vllm, write
from medusa_target import context_of, make_target

from draftmesh.registry import UserError
from draftmesh.stages.draft.medusa.loader import load_heads
from draftmesh.stages.draft.medusa.medusa import MedusaDraft
from draftmesh.stages.draft.shipped import shipped_head


def cut(folder, file):
    path = folder / file
    path.write_bytes(path.read_bytes()[:-400])


def without(folder, name):
    state = v1(folder)
    del state[name]
    torch.save(state, folder / "medusa_lm_head.pt")


def half_v2(folder):
    v2(folder)
    cut(folder, "medusa_lm_head.safetensors")


def half_v1(folder):
    v1(folder)
    cut(folder, "medusa_lm_head.pt")


def code_in_it(folder):
    v1(folder)
    torch.save({"0.0.linear.weight": print}, folder / "medusa_lm_head.pt")


def no_list(folder):
    write(folder, {}, {}, "medusa_lm_head.pt")
    torch.save([1], folder / "medusa_lm_head.pt")


def wide(folder):
    write(folder, {}, blocks("{h}.{j}.linear", 2, 1, hidden=64), "medusa_lm_head.pt")


def more_tokens(folder):
    state = blocks("{h}.{j}.linear", 2, 1) | own("{h}.1.weight", 2, rows=128)
    write(folder, {}, state, "medusa_lm_head.pt")


def other_vocabulary(folder):
    v2(folder)
    (folder / "config.json").write_text(json.dumps({"vocab_size": 128}))


def no_token_map(folder):
    vllm(folder, bias=True, shared=True, reduced=True)
    state = blocks("blocks.{h}.layers.{j}", 3, 2) | own("lm_head.weight", 1, rows=10)
    write(folder, {}, state, "model.safetensors")


def short_token_map(folder):
    state = blocks("{h}.{j}.linear", 2, 1) | own("{h}.1.weight", 2, rows=7)
    write(folder, {}, state | {"token_map": TOKEN_MAP}, "medusa_lm_head.pt")


def uneven(folder):
    state = blocks("{h}.{j}.linear", 2, 1) | {"1.0.linear.weight": torch.zeros(32, 16)}
    write(folder, {}, state, "medusa_lm_head.pt")


def eagle(folder):
    write(folder, {}, {"fc.weight": torch.zeros(4, 8)}, "model.safetensors")


def nothing_but_a_map(folder):
    write(folder, {}, {"token_map": TOKEN_MAP}, "medusa_lm_head.safetensors")


def broken_index(folder):
    v2(folder)
    (folder / "medusa_lm_head.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text('{"weight_map": 3}')


BREAKAGES = {
    half_v1: "medusa_lm_head.pt is damaged or incomplete",
    half_v2: "medusa_lm_head.safetensors is damaged or incomplete",
    code_in_it: "is damaged or incomplete",
    no_list: "a list instead of tensors by name",
    broken_index: "model.safetensors.index.json is damaged",
    lambda f: without(f, "3.0.linear.weight"): "head 3 of 5 lacks the weight of its block 0",
    lambda f: without(f, "2.0.linear.bias"): "head 2 of 5 lacks the bias of its block 0",
    lambda f: without(f, "1.1.weight"): "head 1 of 5 lacks its LM head",
    wide: "hidden size 64 and 96 tokens, the model has hidden size 32 and 96 tokens",
    more_tokens: "hidden size 32 and 128 tokens, the model has hidden size 32 and 96 tokens",
    other_vocabulary: "128 tokens, the model has hidden size 32 and 96 tokens",
    no_token_map: "hidden size 32 and 10 tokens",
    short_token_map: "LM heads are [7, 32], its blocks and token map need [10, 32]",
    uneven: "weights differ in shape: (32, 16) and (32, 32)",
    eagle: "fc.weight is no part of Medusa heads",
    nothing_but_a_map: "no Medusa heads in it",
    lambda f: (f / "config.json").write_text("{}"): "neither medusa_lm_head.safetensors",
    lambda f: None: "no config.json in it",
}


@pytest.mark.parametrize("damage", BREAKAGES)
def test_refused(tmp_path, target, damage):
    damage(tmp_path)
    with pytest.raises(UserError, match=r"draft\.path") as caught:
        load_heads(tmp_path, target)
    assert BREAKAGES[damage] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_merged_heads_name_the_model_they_belong_to(tmp_path, target):
    merged(tmp_path, target.model)
    other = make_target(seed=8)
    with pytest.raises(UserError, match=r"set model=hf model\.path=") as caught:
        load_heads(tmp_path, other)
    assert "\n" not in str(caught.value)


def test_a_draft_is_at_most_as_deep_as_there_are_heads(tmp_path, target):
    v1(tmp_path)
    context = context_of(target)
    config = MedusaDraft.Config(k=6, shape="chain", path=str(tmp_path))
    with pytest.raises(UserError, match=r"draft\.k=6.* has 5 heads.* set draft\.k=5"):
        MedusaDraft(config, context)
    assert MedusaDraft(config, replace(context, automatic=True)).depth == 5
    shallow = MedusaDraft.Config(k=9, shape="static", widths=[2, 1], path=str(tmp_path))
    assert MedusaDraft(shallow, context).depth == 2
    paths = MedusaDraft.Config(k=6, shape="static", paths=[[0] * n for n in range(1, 7)])
    with pytest.raises(UserError, match=r"draft\.k=6"):
        MedusaDraft(replace(paths, path=str(tmp_path)), context)


def test_a_shipped_head_is_found_by_kind_and_model(tmp_path, monkeypatch):
    monkeypatch.setattr("draftmesh.stages.draft.shipped.heads_folder", lambda: tmp_path)
    for name, kind in (("a", "eagle"), ("b", "medusa")):
        (tmp_path / name).mkdir()
        card = json.dumps({"draftmesh_draft": kind, "target": "tiny"})
        (tmp_path / name / "config.json").write_text(card)
    assert shipped_head("medusa", "tiny", None) == tmp_path / "b"
    with pytest.raises(UserError, match=r"task=train draft=medusa"):
        shipped_head("medusa", "other", None)
