import csv
import json
import re

import pytest

from draftmesh.registry import UserError
from draftmesh.stages.task.compare.compare import Compare


def show(*runs, folder=None):
    Compare(Compare.Config(runs=list(map(str, runs)), folder=folder and str(folder))).show({})


def test_the_table_and_its_files(grid_folder, capsys):
    show(grid_folder)
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["eagle", "single", "30.0", "~1.50x", "checked"] in rows
    assert "Fastest: draft=eagle parallel=single, 30.0 tokens/s" in out
    assert f"Plots: {grid_folder / 'grid.html'}" in out
    records = json.loads((grid_folder / "grid.json").read_text())
    with (grid_folder / "grid.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [r["draft"] for r in records] == [line["draft"] for line in lines]
    assert float(lines[0]["speedup_vs_plain"]) == 1.5


def test_the_page_shows_every_run_and_links_their_reports(grid_folder, tmp_path):
    show(grid_folder, folder=tmp_path / "out")
    html = (tmp_path / "out/grid.html").read_text()
    assert re.findall(r'href="([^"]*)"', html) == [
        f"../grid/{job}/report.html" for job in (2, 0, 10, 1)
    ]
    assert html.count("<rect") == 4
    assert "no head &lt;for&gt; m" in html
    squares = re.findall(r"--share: (\d+)%", html)
    assert squares == ["67", "33", "100", "60"]
    assert "http" not in html


def test_runs_of_anywhere_are_compared(grid_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    show(grid_folder / "0", grid_folder / "2")
    assert "draft=eagle, 30.0 tokens/s" in capsys.readouterr().out
    assert (tmp_path / "outputs/compare/grid.html").exists()


def test_runs_without_any_difference_go_by_their_names(write_run, capsys):
    params = {"draft": "none"}
    folders = [write_run(name, params, {"throughput_tok_s": 1.0}) for name in ("a", "b")]
    show(*folders, folder=folders[0])
    assert "run b" in capsys.readouterr().out


@pytest.mark.parametrize("runs", [["nowhere"], []])
def test_no_such_run_is_one_line(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"task\.runs"):
        show(*runs)
