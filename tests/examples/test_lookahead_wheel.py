import json

import pytest

ORIGIN = "draftmesh-lookahead 0.1.0"
TINY = ("tracking=none", "model.dtype=float64", "model.device=cpu", "max_new_tokens=24")


def test_help_and_list_show_it_with_its_origin(run):
    help_text = run("--help").stdout
    assert f"lookahead ({ORIGIN})" in help_text
    groups = help_text.partition("Plugins")[0]
    assert "lookahead" in groups
    listing = run("task=list", "task.kind=draft").stdout
    line = next(line for line in listing.splitlines() if " lookahead " in line)
    assert ORIGIN in line
    assert "Drafts a tree of the n-grams" in line


def test_hydra_names_the_distribution_on_its_search_path(run):
    assert f"plugin:{ORIGIN}" in run("--info", "searchpath").stdout


def test_switched_off(run):
    assert "lookahead" not in run("--help", DRAFTMESH_PLUGINS="none").stdout
    result = run("draft=lookahead", DRAFTMESH_PLUGINS="none")
    assert result.returncode == 2
    assert "draft=lookahead: no such option" in result.stderr


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("draft.branchs=2", "draft.branchs: no such option; did you mean draft.branches?"),
        ("draft.branches=0", "draft.branches=0: must be at least 1"),
    ],
)
def test_its_options_are_checked_like_any_other(run, argument, message):
    result = run("draft=lookahead", "model=tiny_llama", argument, *TINY)
    assert result.returncode == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("choice", "ranks", "counter"),
    [
        (["model=tiny_llama"], 1, "accepted_tokens"),
        (["model=tiny_mixtral", "parallel=ep2", "data.limit=2"], 2, "drafted_tokens"),
    ],
)
def test_it_drafts_and_the_output_stays_the_targets(run, tmp_path, choice, ranks, counter):
    result = run("draft=lookahead", "task.baseline=true", "hydra.run.dir=run", *choice, *TINY)
    assert result.returncode == 0, result.stderr
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["exact_match"] == 1
    assert results[counter] > 0
    assert results["world_size"] == ranks
