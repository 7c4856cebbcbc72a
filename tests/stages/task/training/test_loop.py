import pytest
import torch
from accelerate import Accelerator

from draftmesh.stages.task.training.loop import Trainer
from draftmesh.stages.task.training.progress import Progress


def trainer_of(recipe, folder, report=lambda metrics, step: None, tick=lambda state, loss: None):
    from draftmesh.stages.task.train import knobs

    accelerator = Accelerator(
        mixed_precision="no",
        cpu=True,
        gradient_accumulation_steps=recipe.options.accumulate,
    )
    progress = Progress(recipe.options.epochs, len(recipe.epoch(0)), None)
    return Trainer(
        recipe.plan(accelerator), knobs(recipe.options), progress, accelerator, folder, report, tick
    )


def weights(recipe):
    return {k: v.clone() for k, v in recipe.head.state_dict().items()}


def test_training_lowers_the_loss(make_recipe, tmp_path):
    recipe = make_recipe(epochs=12, learning_rate=3e-3)
    losses = []
    trainer_of(recipe, tmp_path / "run", tick=lambda state, loss: losses.append(loss)).run()
    batches = len(recipe.epoch(0))
    assert sum(losses[-batches:]) < 0.93 * sum(losses[:batches])
    assert len(losses) == 12 * batches


class Stop(Exception):
    pass


@pytest.mark.parametrize("accumulate", [1, 2])
def test_an_interrupted_training_ends_like_an_undisturbed_one(make_recipe, tmp_path, accumulate):
    whole = make_recipe(accumulate=accumulate)
    trainer_of(whole, tmp_path / "whole").run()

    recipe = make_recipe(accumulate=accumulate)
    trainer = trainer_of(recipe, tmp_path / "parts")

    def stop(state, loss):
        if (state.epoch, state.batch) == (1, 1):
            assert trainer.accelerator.sync_gradients
            trainer.checkpoint()
        if (state.epoch, state.batch) == (1, 2):
            raise Stop

    trainer.tick = stop
    with pytest.raises(Stop):
        trainer.run()
    recipe = make_recipe(accumulate=accumulate)
    trainer = trainer_of(recipe, tmp_path / "parts")
    assert trainer.resume()
    assert (trainer.progress.epoch, trainer.progress.batch) == (1, 1)
    trainer.run()
    want, got = weights(whole), weights(recipe)
    assert all(torch.equal(want[name], got[name]) for name in want)


def test_a_crash_while_checkpoints_are_exchanged_loses_nothing(make_recipe, tmp_path):
    recipe = make_recipe()
    trainer_of(recipe, tmp_path / "run").run()
    (tmp_path / "run" / "checkpoint").rename(tmp_path / "run" / "checkpoint.old")
    again = trainer_of(make_recipe(), tmp_path / "run")
    assert again.resume()
    assert again.progress.fraction == 1


def test_best_keeps_the_best_head(make_recipe, tmp_path):
    recipe = make_recipe()
    trainer = trainer_of(recipe, tmp_path / "run")
    scores = iter([1.5, 1.2])
    object.__setattr__(
        trainer.plan,
        "measure",
        lambda: {"val_acceptance_length": next(scores), "val_accept_1": 0.5},
    )
    trainer.checkpoint()
    first = (tmp_path / "run" / "best" / "model.safetensors").read_bytes()
    with torch.no_grad():
        recipe.head.fc.weight.add_(1)
    trainer.checkpoint()
    assert (tmp_path / "run" / "best" / "model.safetensors").read_bytes() == first
    assert (tmp_path / "run" / "last" / "model.safetensors").read_bytes() != first


def test_rate_warms_up_and_falls():
    progress = Progress(epochs=2, batches=10, minutes=None)
    assert progress.rate(1.0, 4) == pytest.approx(0.25)
    progress.step, progress.epoch = 10, 1
    assert progress.rate(1.0, 4) == pytest.approx(0.51)
    progress.epoch = 2
    assert progress.rate(1.0, 4) == pytest.approx(0.02)


def test_minutes_count_over_restarts():
    progress = Progress(epochs=100, batches=10, minutes=1.0)
    progress.load_state_dict(
        {"epoch": 0, "batch": 1, "step": 1, "tokens": 5, "best": 0.0, "spent": 59.0}
    )
    assert 0.98 < progress.fraction < 1
    progress.spent = 61.0
    assert progress.fraction == 1
