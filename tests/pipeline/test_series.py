import math

from draftmesh.pipeline.series import append_series, read_series


def test_lines_come_back_in_order(tmp_path):
    append_series(tmp_path, {"loss": 1.5, "rate": 0.1}, 10)
    append_series(tmp_path, {"loss": 1.25}, None)
    assert list(read_series(tmp_path)) == [({"loss": 1.5, "rate": 0.1}, 10), ({"loss": 1.25}, None)]


def test_nothing_was_written(tmp_path):
    assert list(read_series(tmp_path)) == []


def test_odd_numbers_survive(tmp_path):
    append_series(tmp_path, {"loss": math.inf, "bad": math.nan}, 0)
    ((metrics, step),) = read_series(tmp_path)
    assert metrics["loss"] == math.inf
    assert math.isnan(metrics["bad"])
    assert step == 0
