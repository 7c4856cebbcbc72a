import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.model.hf import HuggingFace
from draftmesh.stages.model.tiny import Tiny


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "gemma"
    checkpoint = Tiny(Tiny.Config(arch="gemma3", layers=4)).load()
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return folder, checkpoint.model


def load(folder, layers):
    config = HuggingFace.Config(
        path=str(folder), layers=layers, dtype="float32", device="cpu", attention="sdpa"
    )
    return HuggingFace(config).load().model


def test_the_first_layers_are_those_of_the_whole(whole):
    folder, model = whole
    short = load(folder, 3)
    assert short.config.num_hidden_layers == 3
    assert short.config.layer_types == model.config.layer_types[:3]
    kept = short.state_dict()
    assert len(kept) < len(model.state_dict())
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in kept.items())


@pytest.mark.parametrize("layers", [0, 5])
def test_layers_that_the_model_lacks(whole, layers):
    with pytest.raises(UserError, match=rf"model.layers={layers}: .* from 1 to the model's 4"):
        load(whole[0], layers)
