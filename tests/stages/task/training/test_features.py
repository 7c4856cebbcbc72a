import copy
from dataclasses import replace

import pytest
import torch
from transformers import LlamaForCausalLM

from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.task.training.batches import load_batch, plan
from draftmesh.stages.task.training.corpus import load_corpus
from draftmesh.stages.task.training.features import FeatureStore

LAYERS = (2, 3, 3, 6)


@pytest.fixture
def chats(chats_file, checkpoint):
    return load_corpus(chats_file, checkpoint.tokenizer, 0)


def store_of(tmp_path, chats, checkpoint):
    return FeatureStore(tmp_path / "f", chats, HFTarget(checkpoint.model), LAYERS, "tiny")


def test_features_are_the_models_hidden_states(tmp_path, chats, checkpoint):
    store = store_of(tmp_path, chats, checkpoint)
    store.fill(range(len(chats)), tokens=100)
    model = LlamaForCausalLM(copy.deepcopy(checkpoint.model.config))
    model.load_state_dict(checkpoint.model.state_dict())
    model.set_attn_implementation("eager")
    for index in (0, 7, 23):
        ids = torch.tensor([chats[index].ids])
        states = model(ids, output_hidden_states=True).hidden_states
        want = torch.stack([states[i][0] for i in LAYERS], 1)
        torch.testing.assert_close(store.read(index).float(), want, rtol=1e-2, atol=1e-2)


def test_what_is_stored_is_not_computed_again(tmp_path, chats, checkpoint):
    store_of(tmp_path, chats, checkpoint).fill([3, 4])
    again = store_of(tmp_path, chats, checkpoint)
    assert again.missing([2, 3, 4, 5]) == [2, 5]
    assert store_of(tmp_path, chats[:9], checkpoint).missing([3, 4]) == [3, 4]


def test_models_of_one_name_have_features_of_their_own(tmp_path, chats, checkpoint):
    store_of(tmp_path, chats, checkpoint).fill([3])
    other = replace(checkpoint, model=copy.deepcopy(checkpoint.model))
    assert store_of(tmp_path, chats, other).missing([3]) == []
    with torch.no_grad():
        other.model.model.layers[4].mlp.up_proj.weight.mul_(1.5)
    assert store_of(tmp_path, chats, other).missing([3]) == [3]
    other.model.bfloat16()
    assert store_of(tmp_path, chats, other).missing([3]) == [3]


def test_batches_are_padded_chats(tmp_path, chats, checkpoint):
    store = store_of(tmp_path, chats, checkpoint)
    batch = load_batch(store, [1, 5])
    for row, index in enumerate([1, 5]):
        length = len(chats[index].ids)
        assert batch.tokens[row, :length].tolist() == list(chats[index].ids)
        assert torch.equal(batch.features[row, :length], store.read(index))
        assert not batch.features[row, length:].any()
    assert batch.prompt.tolist() == [chats[1].prompt, chats[5].prompt]


def test_an_epoch_covers_every_chat_once(chats):
    lengths = [(len(c.ids) - c.prompt, len(c.ids)) for c in chats]
    batches = list(plan(lengths, range(24), 100, seed=0))
    assert sorted(i for batch in batches for i in batch) == list(range(24))
    assert all(len(b) * max(lengths[i][1] for i in b) <= 100 for b in batches)
    assert batches != list(plan(lengths, range(24), 100, seed=1))
    assert batches == list(plan(lengths, range(24), 100, seed=0))
