import logging
import math
import os
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from draftmesh.stages.tracking.mlflow import MlflowTracker
from draftmesh.stages.tracking.openrun import OpenRun


def tracker(folder: Path, **options: Any) -> MlflowTracker:
    return MlflowTracker(MlflowTracker.Config(folder=str(folder), **options))


def stored(run: MlflowTracker) -> Run:
    assert run.run_id is not None
    return MlflowClient(run.uri).get_run(run.run_id)


def test_three_runs_can_be_compared(folder: Path) -> None:
    for k in (1, 3, 5):
        run = tracker(folder)
        run.start(f"ngram-k{k}", {"draft": "ngram", "draft.k": k}, {"git.sha": "abc"})
        run.log_metrics({"throughput_tok_s": 10.0 * k, "acceptance_rate": 0.5})
        run.finish("FINISHED")
    client = MlflowClient(run.uri)
    experiment = client.get_experiment_by_name("draftmesh")
    assert experiment is not None
    runs = client.search_runs(
        [experiment.experiment_id], "", order_by=["metrics.throughput_tok_s DESC"]
    )
    assert [r.data.params["draft.k"] for r in runs] == ["5", "3", "1"]
    assert [r.data.metrics["throughput_tok_s"] for r in runs] == [50.0, 30.0, 10.0]
    assert {r.info.status for r in runs} == {"FINISHED"}
    assert {r.info.run_name for r in runs} == {"ngram-k1", "ngram-k3", "ngram-k5"}
    assert {r.data.tags["mlflow.source.git.commit"] for r in runs} == {"abc"}


def test_what_mlflow_would_refuse_is_recorded_in_another_form(folder: Path) -> None:
    run = tracker(folder)
    run.start("odd", {"a=b[0]": "x" * 9000, "none": None}, {"hydra.overrides": "y" * 9000})
    run.log_metrics({"good": 2, "nan": math.nan, "inf": math.inf})
    run.finish("FINISHED")
    data = stored(run).data
    assert data.metrics == {"good": 2.0}
    assert data.tags["metrics.dropped"] == "inf, nan"
    assert data.params.keys() == {"a_b_0_", "none"}


def test_an_error_is_recorded(folder: Path) -> None:
    run = tracker(folder)
    run.start("bad", {}, {})
    run.finish("FAILED", ValueError("no such layer"))
    run.finish("FINISHED")
    record = stored(run)
    assert record.info.status == "FAILED"
    assert record.data.tags["error.type"] == "ValueError"
    assert record.data.tags["error.message"] == "no such layer"


def test_series_and_artifacts_and_datasets(folder: Path, tmp_path: Path) -> None:
    files = tmp_path / "config"
    files.mkdir()
    (files / "resolved.yaml").write_text("a: 1")
    run = tracker(folder)
    run.start("all", {}, {})
    for step in range(3):
        run.log_metrics({"series/loss": 1.0 / (step + 1)}, step)
    run.log_artifacts(files, "config")
    run.log_artifacts(files / "resolved.yaml")
    run.log_dataset("demo", files / "resolved.yaml", 1)
    run.finish("FINISHED")
    client = MlflowClient(run.uri)
    assert run.run_id is not None
    history = client.get_metric_history(run.run_id, "series/loss")
    assert [(m.step, m.value) for m in history] == [(0, 1.0), (1, 0.5), (2, 1 / 3)]
    assert [a.path for a in client.list_artifacts(run.run_id)] == ["config", "resolved.yaml"]
    assert [a.path for a in client.list_artifacts(run.run_id, "config")] == ["config/resolved.yaml"]
    assert (folder / "mlruns" / run.run_id / "artifacts" / "resolved.yaml").exists()
    [dataset] = stored(run).inputs.dataset_inputs
    assert dataset.dataset.name == "demo"


def test_where_the_runs_are_shown(folder: Path) -> None:
    run = tracker(folder)
    assert run.where() is None
    run.start("here", {}, {})
    run.finish("FINISHED")
    where = run.where()
    assert where is not None
    assert f"MLflow run {run.run_id}" in where
    assert f"--backend-store-uri sqlite:///{folder}/mlflow.db" in where
    assert where.endswith(f"/#/experiments/{stored(run).info.experiment_id}/runs")


def test_a_child_names_its_parent(folder: Path) -> None:
    parent, child = tracker(folder), tracker(folder)
    parent.start("grid", {}, {})
    child.start("one of it", {}, {}, parent.run_id)
    child.finish("FINISHED")
    parent.finish("FINISHED")
    assert stored(child).data.tags["mlflow.parentRunId"] == parent.run_id


def test_metrics_are_written_in_one_batch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    written = MlflowClient.log_batch

    def counted(self: MlflowClient, *args: Any, **batch: Any) -> Any:
        if batch.get("metrics"):
            calls.append(len(batch["metrics"]))
        return written(self, *args, **batch)

    monkeypatch.setattr(MlflowClient, "log_batch", counted)
    run = tracker(folder)
    run.start("many", {}, {})
    for index in range(50):
        run.log_metrics({f"m{index}": index})
    run.finish("FINISHED")
    assert calls == [50]
    assert len(stored(run).data.metrics) == 50


def test_a_failure_to_record_is_one_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **batch: Any) -> None:
        raise OSError("database or disk is full")

    run = tracker(folder)
    run.start("full", {}, {})
    monkeypatch.setattr(MlflowClient, "log_batch", broken)
    monkeypatch.setattr("draftmesh.stages.tracking.openrun.FLUSH_S", -1.0)
    with caplog.at_level(logging.WARNING):
        run.log_metrics({"a": 1.0})
        run.log_metrics({"b": 1.0})
        run.log_artifacts(folder / "absent.html")
        run.finish("FINISHED")
    warned = [record.getMessage() for record in caplog.records if "tracking" in record.name]
    assert len([line for line in warned if "record metrics" in line]) == 1
    assert "disk is full" in warned[0]
    assert stored(run).info.status == "FINISHED"


def test_metrics_that_could_not_be_written_are_kept_for_the_next_try(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = OpenRun.flush
    run = tracker(folder)
    run.start("later", {}, {})
    monkeypatch.setattr("draftmesh.stages.tracking.openrun.FLUSH_S", -1.0)
    with monkeypatch.context() as broken:
        broken.setattr(MlflowClient, "log_batch", lambda *a, **b: 1 / 0)
        run.log_metrics({"a": 1.0})
    monkeypatch.setattr(OpenRun, "flush", flush)
    run.finish("FINISHED")
    assert stored(run).data.metrics == {"a": 1.0}


def test_no_environment_variable_chooses_or_leaks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = f"sqlite:///{tmp_path}/elsewhere.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", elsewhere)
    before = dict(os.environ)
    run = tracker(folder)
    run.start("quiet", {}, {})
    run.log_metrics({"a": 1})
    run.finish("FINISHED")
    ours = ("MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK")
    assert {k: v for k, v in os.environ.items() if k not in ours} == {
        k: v for k, v in before.items() if k not in ours
    }
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert not (tmp_path / "elsewhere.db").exists()
    assert stored(run).data.metrics == {"a": 1.0}
