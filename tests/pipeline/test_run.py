"""A whole run in this process: files, exit code, records."""

import json
from pathlib import Path

import pytest
from built import composed

from draftmesh.pipeline.run import run
from draftmesh.registry import UserError
from draftmesh.stages.data import demo
from draftmesh.stages.tracking.none import NoTracker

DEMO = Path(demo.__file__).with_name("demo.jsonl")
CHOICES = {"model": "tiny_llama", "draft": "ngram", "task": "generate"}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_leaves_its_records(tmp_path):
    cfg = composed("draft.min_match=1", "task.baseline=true")
    assert run(cfg, tmp_path, CHOICES) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["exactness"] == "checked"
    assert results["exact_match"] == 1
    assert results["new_tokens"] == 24
    assert not results["lossy"]
    samples = lines(tmp_path / "samples.jsonl")
    assert [len(sample["token_ids"]) for sample in samples] == [8, 8, 8]
    for sample in samples:
        assert sum(sample["accept_lengths"]) == 8
        assert sample["finish_reason"] == "length"
        assert {"id", "prompt", "text", "prompt_tokens", "steps"} <= set(sample)
    assert (tmp_path / "report.html").exists()


def test_later_turns_follow_the_replies(tmp_path):
    cfg = composed("data.turns=all", "draft.min_match=1", "task.baseline=true")
    assert run(cfg, tmp_path, CHOICES) == 0
    samples = lines(tmp_path / "samples.jsonl")
    turns = [json.loads(line)["turns"] for line in DEMO.read_text().splitlines()][:3]
    asked = [(len(texts), text, turn) for texts in turns for turn, text in enumerate(texts)]
    assert max(turn for _, _, turn in asked) == 1
    assert [(s["prompt"], s["turn"]) for s in samples] == [line[1:] for line in asked]
    longer = [s["prompt_tokens"] for s in samples]
    assert all(
        b > a for (_, _, turn), a, b in zip(asked[1:], longer, longer[1:], strict=False) if turn
    )
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["new_tokens"] == 8 * len(samples)
    slowest = [max(s["steps"] for s in samples if s["turn"] == turn) for turn in (0, 1)]
    assert results["target_forwards"] >= sum(slowest)
    assert results["exactness"] == "checked"
    page = (tmp_path / "report.html").read_text()
    assert page.count(", turn 2") == sum(turn for _, _, turn in asked)


def test_a_run_is_named_after_its_choices_everywhere(tmp_path, capsys):
    run(composed(), tmp_path, CHOICES)
    name = json.loads((tmp_path / "config/params.json").read_text())["name"]
    assert name.startswith("ngram-k")
    assert f"<h1>{name}</h1>" in (tmp_path / "report.html").read_text()
    assert name in capsys.readouterr().out


def test_two_runs_with_one_seed_are_equal(tmp_path):
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        cfg = composed("sampling=nucleus", f"seed={seed}")
        run(cfg, tmp_path / name, CHOICES)
        texts.append([s["token_ids"] for s in lines(tmp_path / name / "samples.jsonl")])
    assert texts[0] == texts[1] != texts[2]


def test_a_mistake_is_found_before_anything_is_written(tmp_path):
    with pytest.raises(UserError, match=r"draft\.k"):
        run(composed("draft.k=0"), tmp_path, CHOICES)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_used_again_shows_nothing_of_the_run_before(tmp_path, monkeypatch):
    run(composed("task=bench", "task.repeats=1", "task.verify_nodes=[]"), tmp_path, CHOICES)
    for name in ("certificate.json", "series.jsonl", "expert_load.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "notes.txt").write_text("the user's own")
    monkeypatch.setattr("draftmesh.pipeline.run.launch", interrupt)
    stored = []
    monkeypatch.setattr(NoTracker, "log_artifacts", lambda _, path: stored.append(path))
    with pytest.raises(KeyboardInterrupt):
        run(composed(), tmp_path, CHOICES)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"config", "environment.json", "notes.txt"}
    assert stored == [tmp_path], "an interrupted run keeps its configuration"


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


def test_what_was_finished_before_a_failure_is_on_disk(tmp_path, monkeypatch):
    from draftmesh.pipeline.build import BuiltPipeline

    finished = BuiltPipeline.finished

    def second_fails(self, completion):
        finished(self, completion)
        if completion.request.index == 1:
            raise RuntimeError("the power went")

    monkeypatch.setattr(BuiltPipeline, "finished", second_fails)
    with pytest.raises(RuntimeError):
        run(composed("batch_size=1"), tmp_path, CHOICES)
    assert len(lines(tmp_path / "samples.jsonl")) == 2
