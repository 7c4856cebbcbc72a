"""draft.k=auto and draft=cascade as parts of a run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from draftmesh.pipeline.build import build_pipeline
from draftmesh.pipeline.summary import rows
from draftmesh.pipeline.worker import Work, execute
from draftmesh.stages.draft.adaptive.draft import AdaptiveDraft
from draftmesh.stages.parallel.ranks import Solo

ROOT = Path(__file__).parents[2]
OPTIONS = [
    "model=tiny_mixtral",
    "model.dtype=float64",
    "model.layers=2",
    "max_new_tokens=14",
    "data.limit=3",
    "tracking=none",
]


def composed(*overrides: str) -> dict[str, Any]:
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        made = compose("config", [*OPTIONS, *overrides])
    cfg: Any = OmegaConf.to_container(made, resolve=True)
    return cfg


def test_the_choice_and_its_reason_are_in_the_results(tmp_path):
    cfg = composed("draft=cascade", "draft.second={name:self,exit_layer:1}", "draft.k=auto")
    report = execute(Work(cfg, tmp_path), Solo())
    assert report is not None
    assert 0 <= report.facts["chosen_k"] <= 16
    assert isinstance(report.facts["chosen_k_reason"], str)
    assert report.facts["mean_k"] > 0
    assert 0 <= report.facts["cascade_first_share"] <= 1


def test_a_draft_that_was_not_used_has_nothing_to_say(tmp_path):
    pipeline = build_pipeline(composed("draft=ngram", "draft.k=auto"), tmp_path, Solo())
    assert pipeline.draft_facts() == {}
    assert isinstance(pipeline.main_draft, AdaptiveDraft)
    assert pipeline.main_draft.depth == 16
    assert pipeline.draft_facts()["chosen_k"] == 4


def test_drafts_stay_shorter_than_the_context(tmp_path):
    for draft, depth in (("draft.shape=chain", 11), ("draft.shape=dynamic", 8)):
        cfg = composed("model.context=12", "draft=self", draft, "draft.k=auto")
        assert build_pipeline(cfg, tmp_path, Solo()).main_draft.depth == depth


def test_ranks_change_the_size_together(tmp_path):
    """Each owns other prompts, and the sizes are those of rank 0's clock."""
    alone = execute(Work(composed("draft=none"), tmp_path), Solo())
    assert alone is not None
    plain = {c.request.id: c.token_ids for c in alone.result.generation.completions}
    folder = tmp_path / "ranks"
    options = ["draft=self", "draft.exit_layer=1", "draft.k=auto", "parallel=ep2"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *OPTIONS, *options, f"hydra.run.dir={folder}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    samples = map(json.loads, (folder / "samples.jsonl").read_text().splitlines())
    assert {s["id"]: s["token_ids"] for s in samples} == plain
    results = json.loads((folder / "results.json").read_text())
    assert results["world_size"] == 2
    assert results["mean_k"] > 0
    (row,) = (row for row in rows(results) if row.label == "chosen k")
    assert row.value == str(results["chosen_k"])
    assert row.note == results["chosen_k_reason"]
