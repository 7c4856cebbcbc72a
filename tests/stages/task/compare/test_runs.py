import json

import pytest

from draftmesh.registry import UserError
from draftmesh.stages.task.compare.runs import find_runs, last_multirun


def test_runs_are_found_below_a_folder_in_the_order_of_their_jobs(grid_folder):
    assert [run.folder.name for run in find_runs([grid_folder])] == ["0", "1", "2", "10", "11"]


def test_a_run_folder_is_itself_a_run_and_counts_once(grid_folder):
    runs = find_runs([grid_folder / "10", grid_folder / "2", grid_folder])
    assert [run.folder.name for run in runs] == ["10", "2", "0", "1", "11"]


def test_what_is_known_of_a_run_that_was_refused(grid_folder):
    run = find_runs([grid_folder / "11"])[0]
    assert run.name == "draft=medusa parallel=tp2"
    assert run.overrides == {"draft": "medusa", "parallel": "tp2"}
    assert run.params == run.config == {}
    assert run.error == "draft=medusa: no head <for> m"
    assert run.results == {}
    assert run.number("throughput_tok_s") is None


def test_what_was_chosen_comes_from_the_command_line_the_parameters_or_the_configuration(
    write_run,
):
    run = find_runs([write_run("a", {"draft": "none", "draft.k": 0}, overrides=["+seed='7'"])])[0]
    assert [run.chosen(o) for o in ("seed", "draft.k", "draft.name", "data.path")] == [
        7,
        0,
        "none",
        None,
    ]


def test_the_configuration_is_what_a_run_really_had(write_run):
    folder = write_run("a", {"draft": "eagle", "draft.nodes": 0}, overrides=["draft.k=5.0"])
    config = {"draft": {"name": "eagle", "k": 5, "nodes": None, "widths": []}, "task": {"on": True}}
    (folder / "config/resolved.yaml").write_text(json.dumps(config))
    (run,) = find_runs([folder])
    options = ("draft", "draft.k", "draft.nodes", "draft.widths", "task.on", "draft.path")
    assert [run.chosen(o) for o in options] == ["eagle", 5, "null", "[]", True, None]


def test_a_preset_is_named_as_on_the_command_line(write_run):
    (run,) = find_runs([write_run("a", {"parallel": "mesh"}, overrides=["parallel=tp2"])])
    assert run.chosen("parallel") == "tp2"


def test_listings_are_no_runs(write_run):
    first, second = write_run("a/0", None), write_run("a/1", {"draft": "none"})
    assert [run.folder for run in find_runs([first.parent])] == [second]


def test_a_folder_without_runs_is_named(tmp_path):
    with pytest.raises(UserError, match=rf"task\.runs: there is no run in {tmp_path}"):
        find_runs([tmp_path])


def test_a_spoilt_file_is_named(write_run):
    folder = write_run("a", {"draft": "none"})
    (folder / "results.json").write_text("{")
    with pytest.raises(UserError, match=r"results\.json cannot be read"):
        find_runs([folder])


def test_the_last_multirun_is_the_newest(tmp_path):
    with pytest.raises(UserError, match=r"task\.runs=\[<folder>"):
        last_multirun(tmp_path)
    for day, time in (("2026-01-02", "09-00"), ("2026-01-10", "08-00"), ("2026-01-10", "07-00")):
        (tmp_path / day / time / "0").mkdir(parents=True)
        (tmp_path / day / time / "multirun.yaml").touch()
        (tmp_path / day / time / "0" / "results.json").touch()
    (tmp_path / "2026-01-11/06-00").mkdir(parents=True)
    (tmp_path / "2026-01-11/06-00/multirun.yaml").touch()  # interrupted before its first result
    assert last_multirun(tmp_path) == tmp_path / "2026-01-10" / "08-00"
