from pathlib import Path

import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.draft.exitadapter import Exit
from draftmesh.stages.task.train import knobs
from draftmesh.stages.task.training.base import cached_layers
from draftmesh.stages.task.training.batches import load_batch
from draftmesh.stages.task.training.loop import optimizer_for
from draftmesh.stages.task.training.progress import Progress
from draftmesh.stages.task.training.self.options import SelfOptions
from draftmesh.stages.task.training.self.recipe import SelfRecipe


@pytest.fixture
def make_self(make_material):
    def make(start=None, **changes) -> SelfRecipe:
        options = {"self": SelfOptions(**({"draft_vocab": 40} | changes))}
        return SelfRecipe(make_material(start=start, learning_rate=5e-3, **options))

    return make


def saved(recipe, folder: Path) -> Path:
    recipe.save(folder, Progress(1, 1, None), {"val_acceptance_length": 1.0})
    return folder


@pytest.mark.parametrize("regress", [0.0, 0.5])
def test_the_loss_falls(make_self, regress):
    recipe = make_self(exit_layer=4, regress=regress)
    optimizer = optimizer_for(list(recipe.head.parameters()), knobs(recipe.options))
    losses = []
    for number in range(12):
        for indices in recipe.epoch(number):
            loss = recipe.loss(load_batch(recipe.store, indices))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
    epoch = len(losses) // 12
    assert sum(losses[-epoch:]) < 0.98 * sum(losses[:epoch])


@pytest.mark.parametrize(("exit_layer", "layers"), [(3, (2, 3, 3, 6)), (4, (4, 6))])
def test_the_shared_cache_is_used_where_it_has_the_layer(make_self, exit_layer, layers):
    assert cached_layers(6) == (2, 3, 3, 6)
    recipe = make_self(exit_layer=exit_layer)
    assert recipe.store.layers == layers
    recipe.store.fill([0])
    assert recipe.store.layers[recipe.loss.column] == exit_layer


def test_it_reads_the_state_that_drafting_gives_it(make_self, checkpoint, tmp_path):
    recipe = make_self(exit_layer=4)
    batch = load_batch(recipe.store, [0])
    where = torch.zeros_like(batch.tokens, dtype=torch.bool)
    where[0, 5] = True
    cache = recipe.target.new_cache(*batch.tokens.shape)
    hidden = recipe.target.forward(batch.tokens, cache, layers=range(4)).hidden
    expected = recipe.head(hidden[:, 5])
    assert torch.allclose(recipe.loss.outputs(batch, where), expected, atol=0.05)


def test_a_third_of_the_layers_by_default(make_self):
    assert make_self().head.shape.exit_layer == 2


def test_a_training_starts_from_an_adapter(make_self, tmp_path):
    first = make_self(exit_layer=4, blocks=1, draft_vocab=20)
    folder = saved(first, tmp_path / "exit")
    assert "task=train draft=self" in (folder / "README.md").read_text()
    second = make_self(start=str(folder))
    assert second.head.shape == first.head.shape
    assert torch.equal(second.exit.ids, first.exit.ids)
    for name, value in second.head.named_parameters():
        assert value.requires_grad
        assert torch.equal(value, first.head.get_parameter(name).to(torch.bfloat16).float())
    with pytest.raises(UserError, match=r"task\.start=.*task\.self\.exit_layer=4"):
        make_self(start=str(folder), exit_layer=3)


def test_the_saved_adapter_is_a_drafts(make_self, tmp_path):
    recipe = make_self(exit_layer=4)
    trained = Exit.load(saved(recipe, tmp_path / "exit"), recipe.target)
    assert trained.adapter.shape.exit_layer == 4


@pytest.mark.parametrize("options", [{"exit_layer": 6}, {"exit_layer": 0}])
def test_a_layer_that_is_no_exit(make_self, options):
    with pytest.raises(UserError, match=r"task\.self\.exit_layer="):
        make_self(**options)


@pytest.mark.parametrize("name", ["blocks", "draft_vocab", "intermediate"])
def test_options_that_cannot_work(name):
    with pytest.raises(UserError, match=rf"task\.self\.{name}=0"):
        SelfOptions(**{name: 0}).check()
