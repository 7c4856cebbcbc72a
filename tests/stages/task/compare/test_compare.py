import csv
import json
import re

import pytest
from rich.console import Console

from draftmesh.registry import UserError
from draftmesh.stages.task.compare.columns import COLUMNS
from draftmesh.stages.task.compare.compare import Compare
from draftmesh.stages.task.compare.grid import grid_of
from draftmesh.stages.task.compare.runs import find_runs
from draftmesh.stages.task.compare.table import table


@pytest.fixture
def show(tmp_path):
    """task=compare; its run folder."""

    def show(*runs):
        folder = tmp_path / "shown"
        Compare(Compare.Config(runs=list(map(str, runs)))).show({}, folder)
        return folder

    return show


def test_the_table_and_its_files(show, grid_folder, capsys):
    folder = show(grid_folder)
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["eagle", "single", "30.0", "~1.50x", "checked"] in rows
    assert "failed: draft=medusa parallel=tp2: draft=medusa: no head <for> m" in out
    assert "Fastest: draft=eagle parallel=single, 30.0 tokens/s" in out
    assert f"Plots: {folder / 'grid.html'}" in out
    records = json.loads((folder / "grid.json").read_text())
    with (folder / "grid.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [r["draft"] for r in records] == [line["draft"] for line in lines]
    assert float(lines[0]["speedup_vs_plain"]) == 1.5


def test_the_page_shows_every_run_and_links_their_reports(show, grid_folder):
    html = (show(grid_folder) / "grid.html").read_text()
    assert re.findall(r'href="([^"]*)"', html) == [
        f"../grid/{job}/report.html" for job in (2, 0, 10, 1)
    ]
    assert html.count("<rect") == 4
    assert "no head &lt;for&gt; m" in html
    squares = re.findall(r"--share: (\d+)%", html)
    assert squares == ["67", "33", "100", "60"]
    assert "http" not in html


def test_nothing_is_written_to_the_runs_compared(show, grid_folder, capsys):
    before = sorted(grid_folder.rglob("*"))
    show(grid_folder / "0", grid_folder / "2")
    assert "draft=eagle, 30.0 tokens/s" in capsys.readouterr().out
    assert sorted(grid_folder.rglob("*")) == before


@pytest.mark.parametrize(("width", "last"), [(30, "speed-up"), (200, "draft ms")])
def test_a_narrow_terminal_shows_fewer_columns_whole(write_run, width, last):
    results = {column.key: 1.0 for column in COLUMNS} | {"exactness": "checked"}
    folders = [write_run(d, {"draft": d}, results, [f"draft={d}"]) for d in ("none", "eagle")]
    found = table(grid_of(find_runs(folders)), "", Console(width=width))
    headings = [str(column.header) for column in found.columns]
    assert headings[0] == "draft"
    assert headings[-2:] == [last, "output"]


def test_runs_without_any_difference_go_by_their_names(show, write_run, capsys):
    params = {"draft": "none"}
    folders = [write_run(name, params, {"throughput_tok_s": 1.0}) for name in ("a", "b")]
    show(*folders)
    assert "run b" in capsys.readouterr().out


def test_one_run_is_one(show, write_run):
    folder = show(write_run("a", {"draft": "none"}, {"throughput_tok_s": 1.0}))
    assert '<p class="meta">1 run</p>' in (folder / "grid.html").read_text()


@pytest.mark.parametrize("runs", [["nowhere"], []])
def test_no_such_run_is_one_line(show, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"task\.runs"):
        show(*runs)
