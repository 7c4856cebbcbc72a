import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import assume, given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from draftmesh.cli.quoting import quote_text, quoted

PARSER = OverridesParser.create()


@given(st.text(alphabet=st.sampled_from("ab ,'\"\\${}[]()=:\n*?#é~+")))
def test_any_text_survives_hydra_and_omegaconf(text):
    assume(text != "???")  # OmegaConf's mark of a missing value
    value = PARSER.parse_override(f"prompt={quoted(text)}").value()
    assert OmegaConf.create({"prompt": value}).prompt == text


@pytest.mark.parametrize(
    "argument", ["seed=1,2", "prompt=null", "prompt='a, b'", 'prompt="it"', "-m"]
)
def test_left_alone(argument):
    assert quote_text([argument]) == [argument]


def test_a_multirun_may_sweep_prompts():
    assert quote_text(["-m", "prompt=a,b"]) == ["-m", "prompt=a,b"]
