import json
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from draftmesh.registry import UserError
from draftmesh.stages.task.train import knobs
from draftmesh.stages.task.training.batches import load_batch
from draftmesh.stages.task.training.loop import optimizer_for
from draftmesh.stages.task.training.progress import Progress
from draftmesh.stages.task.training.small.options import SmallOptions
from draftmesh.stages.task.training.small.recipe import SmallRecipe


@pytest.fixture
def make_small(make_material):
    def make(start=None, **changes) -> SmallRecipe:
        options = SmallOptions(**({"draft_vocab": 40} | changes))
        return SmallRecipe(make_material(small=options, start=start, learning_rate=5e-3))

    return make


def saved(recipe, folder: Path) -> Path:
    recipe.save(folder, Progress(1, 1, None), {"val_acceptance_length": 1.0})
    return folder


@pytest.mark.parametrize("regress", [0.0, 0.5])
def test_the_loss_falls(make_small, regress):
    recipe = make_small(regress=regress)
    optimizer = optimizer_for(list(recipe.head.parameters()), knobs(recipe.options))
    losses = []
    for number in range(8):
        for indices in recipe.epoch(number):
            loss = recipe.loss(load_batch(recipe.store, indices))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
    quarter = len(losses) // 4
    assert sum(losses[-quarter:]) < 0.95 * sum(losses[:quarter])


def test_padding_and_prompts_teach_nothing(make_small):
    recipe = make_small()
    indices = [0, 1, 2]
    together = recipe.loss(load_batch(recipe.store, indices))
    counts, losses = [], []
    for index in indices:
        batch = load_batch(recipe.store, [index])
        answer = batch.tokens[0, int(batch.prompt) :]
        counts.append(int(torch.isin(answer, recipe.loss.vocabulary).sum()))
        losses.append(float(recipe.loss(batch).detach()))
    mean = sum(c * x for c, x in zip(counts, losses, strict=True)) / sum(counts)
    assert float(together.detach()) == pytest.approx(mean, rel=1e-5)


def test_the_first_layers_of_the_target_are_the_first_weights(make_small, checkpoint):
    recipe = make_small(layers=2)
    for own, source in zip(recipe.head.layers, checkpoint.model.model.layers, strict=False):
        assert torch.equal(own.mlp.up_proj.weight, source.mlp.up_proj.weight)
    assert torch.equal(recipe.head.norm.weight, checkpoint.model.model.norm.weight)


def test_all_layers_of_the_target_are_the_target(make_small, checkpoint):
    recipe = make_small(layers=6)
    batch = load_batch(recipe.store, [0, 1])
    everywhere = torch.ones_like(batch.tokens, dtype=torch.bool)
    hidden = recipe.loss.outputs(batch, everywhere).view(*batch.tokens.shape, -1)
    for row, length in enumerate(batch.lengths.tolist()):
        expected = batch.features[row, :length, -1].float()
        assert torch.allclose(hidden[row, :length], expected, atol=0.05)


def test_the_folder_is_hugging_faces_and_small(make_small, tmp_path):
    recipe = make_small()
    folder = saved(recipe, tmp_path / "small")
    config = AutoConfig.from_pretrained(folder)
    assert (config.model_type, config.num_hidden_layers, config.vocab_size) == ("llama", 2, 64)
    keys = json.loads((folder / "config.json").read_text())
    assert keys["draftmesh_shares"] == ["embed_tokens", "lm_head"]
    assert "task=train draft=small" in (folder / "README.md").read_text()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for name, value in recipe.head.named_parameters():
        stored = model.model.get_parameter(name)
        assert torch.equal(stored, value.to(torch.bfloat16).float()), name


def test_a_training_starts_from_a_small_model(make_small, tmp_path):
    first = make_small(draft_vocab=20, layers=1)
    folder = saved(first, tmp_path / "small")
    second = make_small(start=str(folder))
    assert torch.equal(second.sharing.ids, first.sharing.ids)
    for name, value in second.head.named_parameters():
        assert value.requires_grad
        assert torch.equal(value, first.head.get_parameter(name).to(torch.bfloat16).float())


def test_a_start_that_is_no_small_model(make_small, make_recipe, tmp_path):
    folder = saved(make_recipe(), tmp_path / "eagle")
    with pytest.raises(UserError, match=r"task\.start=.*not a small model"):
        make_small(start=str(folder))


def test_no_more_tokens_are_drafted_than_there_are(make_small):
    assert make_small(draft_vocab=8192).sharing.ids.tolist() == list(range(64))


def test_options_that_cannot_work():
    with pytest.raises(UserError, match=r"task\.small\.layers=0"):
        SmallOptions(layers=0).check()
    with pytest.raises(UserError, match=r"task\.small\.draft_vocab=0"):
        SmallOptions(draft_vocab=0).check()
