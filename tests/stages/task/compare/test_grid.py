import json

import pytest

from draftmesh.stages.task.compare.columns import COLUMNS, cell, option, outcome, reason, record
from draftmesh.stages.task.compare.grid import grid_of, varied
from draftmesh.stages.task.compare.runs import find_runs
from draftmesh.stages.task.compare.table import failures

SPEEDUP = next(column for column in COLUMNS if column.key == "speedup_vs_plain")


def test_columns_are_the_options_that_differ(grid_folder):
    assert varied(find_runs([grid_folder])) == ["draft", "parallel"]


def test_an_option_that_one_command_left_out_has_its_usual_value(write_run):
    folders = [
        write_run("a", {"draft": "eagle", "draft.k": 5}, overrides=["draft=eagle"]),
        write_run("b", {"draft": "eagle", "draft.k": 5}, overrides=["draft.k=5", "prompt=a"]),
        write_run("c", {"draft": "eagle", "draft.k": 3}, overrides=["draft.k=3", "prompt=b"]),
    ]
    runs = find_runs(folders)
    assert varied(runs) == ["draft.k", "prompt"]
    assert varied(runs[:2]) == ["prompt"]
    assert [run.chosen("prompt") for run in runs] == [None, "a", "b"]


def test_one_value_written_in_two_ways_is_no_difference(write_run):
    folders = [
        write_run("a", {"draft": "none", "task": "bench"}, overrides=["task.on=true", "temp=0"]),
        write_run("b", {"draft": "ngram"}, overrides=["temp=0.0"]),
    ]
    for folder in folders:
        name = {"a": "none", "b": "ngram"}[folder.name]
        config = {"draft": {"name": name}, "task": {"on": True}, "temp": 0.0}
        (folder / "config/resolved.yaml").write_text(json.dumps(config))
    refused = write_run("c", None, None, ["draft=x", "task.on=True", "temp=0"], "draft=x: no")
    assert varied(find_runs([*folders, refused])) == ["draft"]


def test_without_a_command_line_parameters_tell_runs_apart(write_run):
    folders = [
        write_run(str(number), {"draft": draft, "draft.k": k, "seed": 0})
        for number, (draft, k) in enumerate([("none", 0), ("eagle", 3), ("eagle", 5)])
    ]
    assert varied(find_runs(folders)) == ["draft", "draft.k"]


def test_plain_decoding_on_the_same_plan_is_the_baseline(grid_folder):
    lines = grid_of(find_runs([grid_folder])).lines
    assert [line.speedup for line in lines] == [1.0, 1.0, 1.5, 1.8, None]
    assert [cell(line, SPEEDUP) for line in lines] == ["~1.00x", "~1.00x", "~1.50x", "~1.80x", ""]


def test_what_a_run_measured_itself_comes_first(write_run):
    plain = {"throughput_tok_s": 10.0}
    own = {"throughput_tok_s": 30.0, "speedup_vs_plain": 2.0}
    folders = [write_run("a", {"draft": "none"}, plain), write_run("b", {"draft": "eagle"}, own)]
    line = grid_of(find_runs(folders)).lines[1]
    assert (line.speedup, line.measured, cell(line, SPEEDUP)) == (2.0, True, "2.00x")


@pytest.mark.parametrize("other", ["model", "batch_size", "ffn", "parallel", "data", "threads"])
def test_other_models_plans_and_prompts_are_no_baseline(write_run, other):
    speed = {"throughput_tok_s": 10.0}
    folders = [
        write_run("a", {"draft": "none", other: "1"}, speed),
        write_run("b", {"draft": "eagle", other: "2"}, speed),
    ]
    assert grid_of(find_runs(folders)).lines[1].speedup is None


def test_other_machines_are_no_baseline(write_run):
    speed = {"throughput_tok_s": 10.0}
    both = [{"model": "m", "draft": draft} for draft in ("none", "eagle")]
    folders = [write_run(params["draft"], params, speed) for params in both]
    assert grid_of(find_runs(folders)).lines[1].speedup == 1.0
    (folders[0] / "environment.json").write_text('{"host": "elsewhere"}')
    assert grid_of(find_runs(folders)).lines[1].speedup is None


def test_the_fastest_comes_first_and_the_unfinished_last(grid_folder):
    grid = grid_of(find_runs([grid_folder]))
    assert [line.run.folder.name for line in grid.ranked] == ["2", "0", "10", "1", "11"]
    assert grid.best is grid.ranked[0]


def test_a_lossy_run_is_the_best_only_among_its_like(write_run):
    params = [{"verifier": "match"}, {"verifier": "typical"}]
    exact = write_run("a", params[0], {"throughput_tok_s": 10.0, "lossy": False})
    lossy = write_run("b", params[1], {"throughput_tok_s": 20.0, "lossy": True})
    grid = grid_of(find_runs([exact, lossy]))
    assert grid.best is grid.lines[0]
    assert outcome(grid.lines[1]) == "lossy"
    alone = grid_of(find_runs([lossy]))
    assert alone.best is alone.lines[0]


def test_a_run_that_diverged_is_not_the_best(write_run):
    diverged = {"throughput_tok_s": 20.0, "exactness": "diverged"}
    folders = [
        write_run("a", {"draft": "none"}, {"throughput_tok_s": 10.0}),
        write_run("b", {"draft": "eagle"}, diverged),
    ]
    grid = grid_of(find_runs(folders))
    assert grid.best is grid.lines[0]


def test_a_column_may_be_called_as_a_result_is(write_run):
    folders = [write_run(f, {"ffn": f}, {"ffn": f}, [f"ffn={f}"]) for f in ("auto", "moe")]
    assert [record(line)["ffn"] for line in grid_of(find_runs(folders)).lines] == ["auto", "moe"]


def test_records_hold_what_varied_what_came_of_it_and_where(grid_folder):
    first, *_, last = (record(line) for line in grid_of(find_runs([grid_folder])).ranked)
    assert first["draft"] == "eagle"
    assert first["throughput_tok_s"] == 30.0
    assert first["folder"] == str(grid_folder / "2")
    assert last["outcome"] == "failed"
    assert last["error"] == "draft=medusa: no head <for> m"
    assert last["throughput_tok_s"] is None


def test_a_run_that_says_nothing_did_not_finish(write_run):
    line = grid_of(find_runs([write_run("a", {"draft": "none"})])).lines[0]
    assert (outcome(line), reason(line)) == ("failed", "it did not finish")


def test_a_run_that_was_interrupted_did_not_fail(write_run):
    folders = [write_run(d, {"draft": d}, error="interrupted") for d in ("none", "eagle")]
    grid = grid_of(find_runs(folders))
    assert [outcome(line) for line in grid.lines] == ["interrupted", "interrupted"]
    assert failures(grid)[1] == "interrupted: draft=eagle"


def test_values_are_short_and_as_on_the_command_line():
    assert [option(v) for v in (None, True, 0.5, "a\nb")] == ["-", "true", "0.5", "a b"]
    assert option("x" * 31) == "x" * 27 + "..."
