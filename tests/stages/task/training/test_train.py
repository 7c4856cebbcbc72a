"""The command itself: killed, started again, and its head used."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from draftmesh.registry import UserError
from draftmesh.registry.config import merge_config
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.task.train import Train
from draftmesh.stages.task.training.eagle.options import EagleOptions

ROOT = Path(__file__).parents[4]
MODEL = ["model=tiny_llama", "model.vocab_size=80", "tracking=none", "threads=1"]


def chats(path):
    chance = random.Random(0)
    lines = []
    for number in range(20):
        words = ["".join(chance.choices("abcde", k=3)) for _ in range(9)]
        lines.append({"prompt": f"{number} {words[0]}", "response": " ".join(words[1:])})
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def command(tmp_path, *more):
    return [
        sys.executable,
        str(ROOT / "run.py"),
        *MODEL,
        "draft=eagle",
        "task=train",
        "data=jsonl",
        f"data.path={tmp_path / 'chats.jsonl'}",
        f"task.folder={tmp_path / 'run'}",
        "task.batch_tokens=128",
        "task.eagle.draft_vocab=32",
        "task.precision=no",
        "task.held_out=0.2",
        "task.checkpoint_every=0.2",
        f"hydra.run.dir={tmp_path / 'out'}",
        *more,
    ]


def progress(tmp_path):
    import torch

    file = tmp_path / "run" / "checkpoint" / "custom_checkpoint_0.pkl"
    return torch.load(file, weights_only=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training that was killed after its first checkpoints and started again."""
    tmp_path = tmp_path_factory.mktemp("train")
    chats(tmp_path / "chats.jsonl")
    long = command(tmp_path, "task.epochs=30")
    process = subprocess.Popen(
        long, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    place = tmp_path / "run" / "checkpoint"
    while process.poll() is None and not place.exists():
        time.sleep(0.05)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = progress(tmp_path)
    second = subprocess.run(
        command(tmp_path, "task.epochs=30"), cwd=tmp_path, capture_output=True, text=True
    )
    assert second.returncode == 0, second.stderr
    return tmp_path, before, second


def test_it_continues_after_a_kill(trained):
    tmp_path, before, _ = trained
    after = progress(tmp_path)
    assert before["step"] < after["step"]
    assert after["step"] == 30 * after["batch"]
    assert after["spent"] > before["spent"]


def test_a_training_that_is_over_says_so(trained):
    tmp_path, _, second = trained
    assert "held-out chats: " in second.stdout
    before = (tmp_path / "run/metrics.jsonl").read_text()
    third = subprocess.run(
        command(tmp_path, "task.epochs=30"), cwd=tmp_path, capture_output=True, text=True
    )
    assert third.returncode == 0
    assert "trained to the end before" in third.stdout
    assert (tmp_path / "run/metrics.jsonl").read_text() == before


def test_the_head_drafts(trained):
    tmp_path, _, _ = trained
    use = [
        *command(tmp_path)[:2],
        *MODEL,
        "draft=eagle",
        f"draft.path={tmp_path / 'run' / 'best'}",
        "prompt=1 abc",
        "max_new_tokens=12",
        "model.dtype=float64",
        "task.baseline=true",
        f"hydra.run.dir={tmp_path / 'use'}",
    ]
    done = subprocess.run(use, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "use" / "results.json").read_text())
    assert results["exact_match"] in (True, 1.0)


def test_other_chats_or_another_model_do_not_go_on_in_its_folder(trained):
    tmp_path, _, _ = trained
    head = (tmp_path / "run/best/model.safetensors").read_bytes()
    text = (tmp_path / "chats.jsonl").read_text()
    (tmp_path / "others.jsonl").write_text(text.replace("a", "e"))
    for change in (f"data.path={tmp_path / 'others.jsonl'}", "model.std=0.3"):
        done = subprocess.run(
            command(tmp_path, change), cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "task.folder=" in done.stderr
        assert "task.resume=false" in done.stderr
    assert (tmp_path / "run/best/model.safetensors").read_bytes() == head


def test_the_card_tells_how(trained):
    card = (trained[0] / "run" / "best" / "README.md").read_text()
    assert "task.epochs=30" in card
    assert "20 chats" in card
    assert str(trained[0]) not in card


class Stub:
    """What `task=train` looks at before it starts."""

    def __init__(self, checkpoint, path, draft="eagle", world=1):
        self.cfg = {"draft": {"name": draft}, "data": {"name": "jsonl", "path": path}, "seed": 0}
        self.ranks = SimpleNamespace(world=world)
        self.checkpoint, self.target = checkpoint, HFTarget(checkpoint.model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draft": "ngram"}, "draft=ngram"),
        ({"path": None}, "data.path"),
        ({"world": 2}, "parallel=single"),
    ],
)
def test_what_cannot_be_trained_is_a_users_error(checkpoint, chats_file, tmp_path, change, message):
    stub = Stub(checkpoint, **({"path": str(chats_file)} | change))
    with pytest.raises(UserError, match=message):
        Train(Train.Config(folder=str(tmp_path / "run"))).run(stub)


def test_one_prompt_is_no_corpus(checkpoint, tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"prompt": "1 abc", "response": "bcd dea"}) + "\n")
    config = Train.Config(folder=str(tmp_path / "run"), precision="no", warmup=1)
    with pytest.raises(UserError, match=r"data\.path: .* too few .* different prompts"):
        build_and_run(config, Stub(checkpoint, str(path)))


def build_and_run(config, stub):
    return Train(config).run(stub)


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": 0},
        {"learning_rate": 0.0},
        {"precision": "fp8"},
        {"held_out": 1.0},
    ],
)
def test_options_that_cannot_work_are_named(checkpoint, chats_file, tmp_path, options):
    (name,) = options
    config = Train.Config(folder=str(tmp_path / "run"), **({"precision": "no"} | options))
    stub = Stub(checkpoint, str(chats_file))
    with pytest.raises(UserError, match=rf"task\.{name}="):
        build_and_run(config, stub)


@pytest.mark.parametrize(
    "options", [{"version": 2}, {"kv_heads": 3}, {"steps": [2, 0]}, {"steps": []}]
)
def test_options_of_a_kind_that_cannot_work_are_named(checkpoint, chats_file, tmp_path, options):
    (name,) = options
    node = EagleOptions(**options)
    config = Train.Config(folder=str(tmp_path / "run"), precision="no", eagle=node)
    stub = Stub(checkpoint, str(chats_file))
    with pytest.raises(UserError, match=rf"task\.eagle\.{name}="):
        build_and_run(config, stub)


def test_the_command_of_a_card_holds_what_differs():
    node = EagleOptions(steps=[2, 4])
    options = Train.Config(eagle=node, folder="elsewhere", learning_rate=1e-3, start="some/head")
    assert options.overrides("eagle") == [
        "task.start=head",
        "task.learning_rate=0.001",
        "task.eagle.steps=[2,4]",
    ]


def test_a_wrong_option_of_a_kind_is_named():
    with pytest.raises(UserError, match=r"task\.eagle\.step: .*task\.eagle\.steps"):
        merge_config(Train.Config, {"eagle": {"step": 3}}, "task.")
    with pytest.raises(UserError, match=r"task\.eagle=3"):
        merge_config(Train.Config, {"eagle": 3}, "task.")
    assert merge_config(Train.Config, {"eagle": {"version": 1}}, "task.").eagle.version == 1
