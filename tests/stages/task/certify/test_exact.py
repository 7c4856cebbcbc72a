"""The exact test passes what is exact and catches what is not, for every shape."""

from typing import Any

import pytest

from draftmesh.registry import build
from draftmesh.stages.task.certify.exact import exact_test
from draftmesh.stages.task.certify.shape import Shape

SHAPES = {
    "none": Shape(),
    "drawn chain": Shape((-1, 0, 1, 2, 3), (True,) * 5),
    "given chain": Shape((-1, 0, 1), (False,) * 3),
    "cascade": Shape((-1, 0, 1), (False, True, True)),
    "tree with replacement": Shape((-1, -1, 0, 0), (True,) * 4),
    "tree without": Shape((-1, -1, 0, 0), (True,) * 4, False),
    "given tree": Shape((-1, -1, 0, 0), (False,) * 4),
}
SAMPLING: dict[str, dict[str, Any]] = {
    "nucleus": {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.3},
    "top-k": {"temperature": 1.3, "top_k": 50, "presence_penalty": 0.4},
    "bias": {"temperature": 1.0, "logit_bias": {700: 1.0, 900: -2.0}, "min_p": 0.1},
}


def options(name: str) -> dict[str, Any]:
    return {"name": "processors", **SAMPLING[name]}


@pytest.mark.parametrize("sampling", SAMPLING)
@pytest.mark.parametrize(
    ("verifier", "shape"),
    [("ratio", s) for s in SHAPES]
    + [("match", s) for s in SHAPES]
    + [("block", s) for s in SHAPES if "tree" not in s],
)
def test_exact_verifiers(verifier: str, shape: str, sampling: str) -> None:
    part = exact_test(build("verifier", {"name": verifier}), options(sampling), [SHAPES[shape]])
    assert part.holds
    assert part.data["total_variation"] < 1e-12


@pytest.mark.parametrize("verifier", ["ratio", "match", "block"])
def test_greedy(verifier: str) -> None:
    part = exact_test(
        build("verifier", {"name": verifier}), {"name": "processors"}, [SHAPES["given chain"]]
    )
    assert part.data["total_variation"] == 0
    assert len(part.data["shapes"][0]["outcomes_by_accepted_tokens"]) > 1


def test_no_token_twice_needs_a_larger_vocabulary() -> None:
    sampling = {"name": "processors", "temperature": 1.0, "no_repeat_ngram": 1}
    part = exact_test(build("verifier", {"name": "ratio"}), sampling, [SHAPES["drawn chain"]])
    assert part.holds
    assert part.data["vocabulary"] == 6


@pytest.mark.usefixtures("biased")
@pytest.mark.parametrize("shape", ["drawn chain", "tree with replacement", "tree without"])
@pytest.mark.parametrize("verifier", ["reluctant", "hot_bonus", "raw_match", "again"])
def test_biased_verifiers(verifier: str, shape: str) -> None:
    part = exact_test(build("verifier", {"name": verifier}), options("nucleus"), [SHAPES[shape]])
    assert part.holds is False


@pytest.mark.usefixtures("biased")
def test_one_hot_drafts_show_the_bias_too() -> None:
    part = exact_test(
        build("verifier", {"name": "reluctant"}), options("nucleus"), [SHAPES["given chain"]]
    )
    assert part.holds is False
    assert part.data["total_variation"] > 1e-3


def test_a_lossy_verifier() -> None:
    part = exact_test(
        build("verifier", {"name": "typical"}), options("nucleus"), [SHAPES["drawn chain"]]
    )
    assert part.data["total_variation"] > 0.1
