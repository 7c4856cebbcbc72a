import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from draftmesh.pipeline.results import results_of, split, write_config, write_results
from draftmesh.registry import UserError
from draftmesh.registry.contracts.result import RunResult


def test_results_are_flat_numbers(tmp_path: Path, result: RunResult) -> None:
    written = write_results(tmp_path, result, {"world_size": 1, "ffn": "dense", "lossy": False})
    stored = json.loads((tmp_path / "results.json").read_text())
    assert stored == json.loads(json.dumps(written))
    assert stored["new_tokens"] == 14
    assert isinstance(stored["throughput_tok_s"], float)
    assert stored["exactness"] == "checked"
    assert stored["exact_match"] == 1
    assert stored["speedup_vs_plain"] == pytest.approx((14 / 1.0) / (14 / 0.8))
    assert stored["world_size"] == 1
    assert stored["lossy"] is False


def test_a_difference_from_plain_decoding_is_told(result: RunResult) -> None:
    assert result.generation is not None
    result.generation.completions[1].token_ids[-1] += 1
    found = results_of(result, {})
    assert found["exactness"] == "diverged"
    assert found["exact_match"] == 0.5


def test_exactness_is_not_claimed_without_a_comparison(result: RunResult) -> None:
    sampled = results_of(replace(result, comparable=False), {})
    assert sampled["exactness"] == "unchecked"
    assert sampled["speedup_vs_plain"] is not None
    alone = results_of(replace(result, plain=None), {})
    assert alone["exactness"] == "unchecked"
    assert alone["speedup_vs_plain"] is None


def test_the_task_has_the_last_word(result: RunResult) -> None:
    found = results_of(replace(result, metrics={"ttft_ms": 7.0, "val_loss": 1.5}), {"ttft_ms": 8})
    assert found["ttft_ms"] == 7.0
    assert found["val_loss"] == 1.5


def test_the_tracker_gets_numbers_and_text_apart() -> None:
    metrics, tags = split({"a": 1, "b": 0.5, "lossy": True, "exactness": "checked", "none": None})
    assert metrics == {"a": 1.0, "b": 0.5, "lossy": 1.0}
    assert tags == {"exactness": "checked"}


def test_acceptance_per_position(tmp_path: Path, result: RunResult) -> None:
    write_results(tmp_path, result, {})
    stored = json.loads((tmp_path / "acceptance.json").read_text())
    assert stored["histogram"] == {"0": 4, "1": 3, "2": 2, "4": 1}
    assert stored["positions"][1] == {
        "position": 2,
        "offered": 6,
        "accepted": 3,
        "acceptance": 0.5,
        "reached": 0.3,
    }
    with (tmp_path / "acceptance.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [int(row["accepted"]) for row in table] == [6, 3, 1, 1]


def test_documents_and_expert_load(tmp_path: Path, result: RunResult) -> None:
    more = replace(
        result, documents={"certificate.json": {"lossless": True}}, expert_load=[[1.0, 3.0]]
    )
    write_results(tmp_path, more, {})
    assert json.loads((tmp_path / "certificate.json").read_text()) == {"lossless": True}
    assert json.loads((tmp_path / "expert_load.json").read_text()) == {"tokens": [[1.0, 3.0]]}


def test_values_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    write_results(tmp_path, RunResult(metrics={"x": float("nan"), "y": float("inf")}), {})
    stored = json.loads((tmp_path / "results.json").read_text())
    assert stored == {"x": None, "y": None}


def test_configuration_is_stored(tmp_path: Path) -> None:
    cfg = {"prompt": "costs ${5", "draft": {"name": "ngram", "k": 5}}
    write_config(tmp_path, cfg, ["draft=ngram"], {"python": "3.11"})
    assert yaml.safe_load((tmp_path / "config" / "resolved.yaml").read_text()) == cfg
    assert yaml.safe_load((tmp_path / "config" / "overrides.yaml").read_text()) == ["draft=ngram"]
    assert json.loads((tmp_path / "environment.json").read_text()) == {"python": "3.11"}


def test_a_folder_that_cannot_be_written_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"hydra\.run\.dir"):
        write_results(tmp_path / "file", RunResult(), {})


def test_nothing_is_left_of_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_results(tmp_path, RunResult(metrics={"a": 1}), {})

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(UserError, match="No space left on device"):
        write_results(tmp_path, RunResult(metrics={"a": 2}), {})
    assert json.loads((tmp_path / "results.json").read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
