"""Every pair of values that cannot meet is refused, with one line that says what to change."""

from typing import Any

import pytest
from cover import Pair, refused_pairs
from drafts import NODES
from factors import FACTORS, SHAPES, TREES, Case
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from draftmesh.pipeline.build import build_pipeline
from draftmesh.pipeline.validate import check_options
from draftmesh.registry import UserError
from draftmesh.stages.parallel.ranks import Solo

GROUPS = {"exit": "self", "skip": "self", "adaptive": "self", "eagle1": "eagle", "eagle3": "eagle"}
OPTION = {"shape": "draft", "draft": "draft", "arch": "model", "verifier": "verifier"}


def start(case: Case, folder: Any) -> None:
    """What the command does before it decodes."""
    group = GROUPS.get(case.draft, case.draft)
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        chosen = [f"model=tiny_{case.arch}", f"draft={group}", f"verifier={case.verifier}"]
        cfg: Any = OmegaConf.to_container(compose("config", chosen), resolve=True)
    cfg["draft"] |= NODES[case.draft] | ({} if case.shape == "chain" else SHAPES[case.shape])
    if case.draft == "adaptive":
        cfg["draft"]["k"] = "auto"
    check_options(cfg)
    build_pipeline(cfg, folder, Solo()).engine  # noqa: B018


def case_of(pair: Pair) -> Case:
    """The pair, and beside it nothing that would be refused for itself."""
    values = {factor: options[0] for factor, options in FACTORS.items()}
    values |= {"draft": "exit"} | {pair[0]: pair[1], pair[2]: pair[3]}
    return Case(**values)


@pytest.mark.parametrize("pair", refused_pairs(), ids=lambda pair: f"{pair[1]}-{pair[3]}")
def test_refused_with_one_line(pair, tmp_path):
    with pytest.raises(UserError) as caught:
        start(case_of(pair), tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert any(OPTION[factor] in message for factor in (pair[0], pair[2])), message


@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
@pytest.mark.parametrize("draft", ["exit", "skip", "adaptive"])
def test_what_is_allowed_is_not_refused(draft, shape, tmp_path):
    assert draft in TREES
    start(Case(draft, "match", shape, "1", "greedy", "llama"), tmp_path)
