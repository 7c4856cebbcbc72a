"""From the command's options to heads that draft."""

import json
import random

import pytest
from built import built

from draftmesh.registry import build

MODEL = ("model.vocab_size=80", "seed=3")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("medusa")
    chance = random.Random(0)
    with (folder / "chats.jsonl").open("w") as file:
        for number in range(24):
            words = ["".join(chance.choices("abcde", k=3)) for _ in range(9)]
            row = {"prompt": f"{number} {words[0]}", "response": " ".join(words[1:])}
            file.write(json.dumps(row) + "\n")
    pipeline = built(
        folder / "run",
        "draft=medusa",
        "task=train",
        "data=jsonl",
        f"data.path={folder / 'chats.jsonl'}",
        "data.limit=null",
        f"task.folder={folder / 'training'}",
        "task.precision=no",
        "task.batch_tokens=256",
        "task.held_out=0.2",
        "task.epochs=12",
        "task.warmup=4",
        "task.learning_rate=0.01",
        "task.medusa.heads=3",
        "task.medusa.draft_vocab=48",
        *MODEL,
    )
    losses = []
    from draftmesh.stages.task.training import loop

    step = loop.Trainer._step

    def noted(self, batch):
        losses.append(step(self, batch))
        return losses[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Trainer, "_step", noted)
        result = build("task", pipeline.cfg["task"]).run(pipeline)
    return folder, losses, result


def test_the_loss_falls(trained):
    _, losses, _ = trained
    batches = len(losses) // 12
    assert sum(losses[-batches:]) < 0.9 * sum(losses[:batches])


def test_the_result_says_how_to_use_it(trained):
    folder, _, result = trained
    best = folder / "training" / "best"
    assert f"draft=medusa draft.path={best}" in result.lines[0]
    assert "draft=medusa" in (best / "README.md").read_text()


@pytest.mark.parametrize("layout", [".", "vllm"])
@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
def test_the_heads_draft_losslessly(trained, tmp_path, layout, shape):
    path = trained[0] / "training" / "best" / layout
    options = ("draft=medusa", f"draft.path={path}", "draft.k=3", f"draft.shape={shape}", *MODEL)
    pipeline = built(tmp_path, *options, "max_new_tokens=24")
    asked = pipeline.requests()
    ours = pipeline.generate(pipeline.engine, asked)
    plain = pipeline.generate(pipeline.plain, asked)
    assert [c.token_ids for c in ours.completions] == [c.token_ids for c in plain.completions]
    assert ours.counters.drafted > 0


def test_the_size_can_be_left_to_the_run(trained, tmp_path):
    best = trained[0] / "training" / "best"
    options = ("draft=medusa", f"draft.path={best}", "draft.k=auto", "draft.shape=chain", *MODEL)
    pipeline = built(tmp_path, *options)
    assert pipeline.main_draft.depth == 3
    assert len(pipeline.generate(pipeline.engine, pipeline.requests()).completions) == 3
