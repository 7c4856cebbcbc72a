from dataclasses import fields
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from draftmesh.registry import GROUPS, build_config, get, names

CONF = Path(__file__).parents[2] / "conf"
OPTIONS = sorted(p.relative_to(CONF).with_suffix("") for p in CONF.glob("*/*.yaml"))
CHOSEN_LATER = {"verifier": "auto"}


def composed(*overrides: str) -> dict:
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        return OmegaConf.to_container(compose("config", list(overrides)), resolve=True)


def test_every_kind_is_a_group_and_every_group_a_kind():
    groups = {option.parts[0] for option in OPTIONS} - {"experiment"}
    assert groups == set(GROUPS)
    assert set(GROUPS) < set(composed())


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.parts[0] != "experiment"], ids=str)
def test_option_lists_exactly_the_options_of_its_plugin(option):
    kind, preset = option.parts
    node = composed(f"{kind}={preset}")[kind]
    assert next(iter(node)) == "name"
    if node["name"] == CHOSEN_LATER.get(kind):
        assert list(node) == ["name"]
        return
    cls = get(kind, node["name"])
    assert list(node) == [field.name for field in fields(cls.Config)]
    config = build_config(cls, node)
    if preset == node["name"]:
        assert config == cls.Config(), "the values differ from the Config's defaults"


@pytest.mark.parametrize("kind", list(GROUPS))
def test_every_plugin_can_be_chosen(kind):
    offered = {
        composed(f"{o.parts[0]}={o.parts[1]}")[kind]["name"] for o in OPTIONS if o.parts[0] == kind
    }
    assert set(names(kind)) <= offered


@pytest.mark.parametrize("option", [o.parts[1] for o in OPTIONS if o.parts[0] == "experiment"])
def test_experiment_composes_and_says_how_to_run_it(option):
    assert composed(f"experiment={option}")
    text = (CONF / "experiment" / f"{option}.yaml").read_text()
    assert text.startswith("# @package _global_\n")
    assert f"experiment={option}" in text


def test_no_config_names_a_python_path():
    for path in CONF.rglob("*.yaml"):
        assert "_target_" not in path.read_text(), path


def test_values_given_on_the_command_line_win():
    assert composed("draft.k=2")["draft"]["k"] == 2
    assert composed("parallel=ep4", "parallel.ep=3")["parallel"]["ep"] == 3
