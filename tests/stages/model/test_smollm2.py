import pytest
import torch

from draftmesh.stages.data.encode import encode_turns
from draftmesh.stages.model.cachefolder import ready_folder
from draftmesh.stages.model.manifest import file_sha256
from draftmesh.stages.model.smollm2 import SmolLM2

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def checkpoint():
    return SmolLM2(SmolLM2.Config(dtype="float32", attention="sdpa")).load()


def test_weights_are_the_ones_that_heads_are_trained_for(checkpoint):
    digest = file_sha256(checkpoint.path / "model.safetensors")
    assert digest == "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd"


def test_it_ends_at_every_end_and_splits_digits(checkpoint):
    assert checkpoint.name == "smollm2"
    assert [checkpoint.tokenizer.decode([i]) for i in checkpoint.eos_ids] == [
        "<|endoftext|>",
        "<|im_end|>",
    ]
    assert checkpoint.tokenizer("x  20 24").tokens() == ["x", "ĠĠ", "2", "0", "Ġ", "2", "4"]


def test_it_speaks_english(checkpoint):
    ids = encode_turns(checkpoint, ["What is the capital of France?"], 8192, "q")
    out = checkpoint.model.generate(torch.tensor([ids]), max_new_tokens=12)[0, len(ids) :]
    assert "Paris" in checkpoint.tokenizer.decode(out)


def test_the_second_start_converts_nothing(checkpoint):
    def refuse(work, out):
        raise AssertionError("converted again")

    assert ready_folder(checkpoint.path.name, refuse) == checkpoint.path
