from pathlib import Path

from draftmesh.stages.tracking.none import NoTracker


def test_nothing_is_written(tmp_path: Path) -> None:
    tracker = NoTracker(NoTracker.Config())
    tracker.start("name", {"a": 1}, {"b": "c"})
    tracker.log_metrics({"m": 1.0})
    tracker.log_artifacts(tmp_path)
    tracker.finish("FINISHED")
    assert tracker.run_id is None
    assert tracker.where() is None
    assert list(tmp_path.iterdir()) == []
