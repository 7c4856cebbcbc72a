import json
import shutil

import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.task.training.progress import Progress


def test_each_epoch_has_its_depth(make_recipe):
    recipe = make_recipe(steps=[1, 4])
    depths = []
    for epoch in range(3):
        recipe.epoch(epoch)
        depths.append(recipe.loss.steps)
    assert depths == [1, 4, 4]


def saved(recipe, folder):
    recipe.save(folder, Progress(1, 1, None), {"val_acceptance_length": 1.0})
    return folder


@pytest.mark.parametrize("version", [1, 3])
def test_a_training_starts_from_a_head(make_recipe, tmp_path, version):
    first = make_recipe(version=version)
    with torch.no_grad():
        for parameter in first.head.parameters():
            parameter.add_(torch.randn_like(parameter))
    folder = saved(first, tmp_path / "head")
    second = make_recipe(start=str(folder), version=version, draft_vocab=12)
    assert second.loss.vocabulary.tolist() == (
        first.loss.vocabulary.tolist() if version == 3 else second.frequent(12).tolist()
    )
    for name, value in second.head.named_parameters():
        expected = first.head.get_parameter(name).to(torch.bfloat16).float()
        assert value.requires_grad
        assert torch.equal(value, expected), name


def test_a_start_of_another_kind_or_shape_is_refused(make_recipe, tmp_path):
    folder = saved(make_recipe(), tmp_path / "head")
    with pytest.raises(UserError, match=r"task\.start=.*task\.eagle\.version=3"):
        make_recipe(start=str(folder), version=1)
    with pytest.raises(UserError, match=r"task\.start=.*no such folder"):
        make_recipe(start=str(tmp_path / "nowhere"))
    other = shutil.copytree(folder, tmp_path / "other")
    keys = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(keys | {"vocab_size": 99}))
    with pytest.raises(UserError, match=r"task\.start=.*99 tokens.* 64 tokens"):
        make_recipe(start=str(other))
    (other / "model.safetensors").write_bytes(b"half")
    with pytest.raises(UserError, match=r"task\.start"):
        make_recipe(start=str(other))
