from pathlib import Path

import pytest
import yaml

from draftmesh.cli.additions import OPEN, add_plus

CONF = Path(__file__).parents[2] / "conf"


def test_they_are_the_empty_mappings_of_the_configuration():
    found = {
        f"{path.parent.name}.{key}"
        for path in CONF.glob("*/*.yaml")
        for key, value in (yaml.safe_load(path.read_text()) or {}).items()
        if value == {}
    }
    assert found == set(OPEN)


@pytest.mark.parametrize(
    ("argument", "group", "option", "value"),
    [
        ("sampling.logit_bias={5:1.0}", "sampling", "logit_bias", {5: 1.0}),
        ("+sampling.logit_bias={5:1.0}", "sampling", "logit_bias", {5: 1.0}),
        ("model.extra={rope_theta:1.0}", "model", "extra", {"rope_theta": 1.0}),
        ("model.extra.rope_theta=1.0", "model", "extra", {"rope_theta": 1.0}),
    ],
)
def test_new_keys_need_no_plus(call, pipeline, argument, group, option, value):
    result = call("model=tiny_llama", argument)
    assert (result.code, result.err) == (0, "")
    assert pipeline.calls[0][0][group][option] == value


def test_nor_in_a_multirun(call, pipeline):
    assert call("-m", "sampling.logit_bias={5:1.0,6:2.0},{}").code == 0
    biases = [cfg["sampling"]["logit_bias"] for cfg, _ in pipeline.calls]
    assert biases == [{5: 1.0, 6: 2.0}, {}]


@pytest.mark.parametrize("argument", ["sampling.top_k=5", "model.extras={}", "-m", "draft=none"])
def test_left_alone(argument):
    assert add_plus([argument]) == [argument]
