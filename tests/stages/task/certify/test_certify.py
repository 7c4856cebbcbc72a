"""Configurations that are lossless, and ones that only say so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from draftmesh.pipeline.run import run
from draftmesh.registry import UserError
from draftmesh.registry.contracts.result import RunResult
from draftmesh.stages.model.cache import SlotCache
from draftmesh.stages.task.certify import float64, plan
from draftmesh.stages.task.certify.certify import Certify
from draftmesh.stages.task.certify.plan import LeftOut

Run = Callable[..., RunResult]
Part = Callable[[RunResult, str], dict[str, Any]]
SELF = ("draft=self", "draft.exit_layer=3")
WARM = ("sampling=temperature", "sampling.temperature=0.7")
NUCLEUS = ("sampling=nucleus", "sampling.repetition_penalty=1.2")


def names(result: RunResult) -> list[str]:
    return [part["name"] for part in result.documents["certificate.json"]["parts"]]


@pytest.mark.parametrize("draft", [("draft=none",), ("draft=ngram",), SELF], ids="-".join)
def test_greedy(draft: tuple[str, ...], certify: Run, part: Part) -> None:
    result = certify(*draft)
    assert result.lines[-1].startswith("lossless: ")
    assert result.failed is None
    assert (result.metrics["exactness"], result.metrics["exact_match"]) == ("checked", 1)
    assert names(result) == ["exact", "float64_greedy", "own_greedy"]
    found = part(result, "float64_greedy")["data"]
    assert found["prompts"] == found["equal_prompts"] == 3
    assert (found["accepted"] > 0) == (draft != ("draft=none",))


@pytest.mark.parametrize("verifier", ["ratio", "block"])
def test_sampling_with_the_ratio_of_two_distributions(
    verifier: str, certify: Run, part: Part
) -> None:
    result = certify(*SELF, *NUCLEUS, f"verifier={verifier}")
    assert result.lines[-1].startswith("lossless: ")
    assert names(result) == ["exact", "float64_greedy", "own_greedy", "fit"]
    fit, exact = part(result, "fit")["data"], part(result, "exact")["data"]
    assert 0 < fit["accepted"] < fit["drafted"]
    assert fit["p_value"] > fit["significance"]
    assert fit["detects_total_variation"] <= 0.12
    assert fit["first_token"]["cells"] > 2
    assert exact["total_variation"] < 1e-12
    (shape,) = exact["shapes"]
    assert shape["shape"] == "a chain of 3 drawn tokens"
    assert shape["outcomes_by_accepted_tokens"].keys() == {"0", "1", "2", "3"}


def test_sampling_with_shared_noise(certify: Run, part: Part) -> None:
    result = certify(*SELF, *NUCLEUS)
    assert result.lines[-1].startswith("lossless: ")
    names_ = ["exact", "float64_greedy", "float64_sampled", "own_sampled", "own_greedy"]
    assert names(result) == names_
    found = part(result, "float64_sampled")["data"]
    assert found["equal_prompts"] == 3
    assert 0 < found["accepted"] < found["drafted"]


def test_prompt_lookup_and_no_draft_when_sampling(certify: Run) -> None:
    for draft in ("none", "ngram"):
        result = certify(f"draft={draft}", "verifier=ratio", *WARM)
        assert result.lines[-1].startswith("lossless: ")


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        (("verifier=ratio", "draft.children=distinct"), "3 drawn nodes without replacement"),
        (("verifier=ratio", "draft.children=independent"), "3 drawn nodes with replacement"),
        (("verifier=match",), "3 given nodes"),
    ],
)
def test_trees(options: tuple[str, ...], shape: str, certify: Run, part: Part) -> None:
    result = certify(*SELF, *WARM, "draft.shape=static", "draft.widths=[2,2]", *options)
    assert result.lines[-1].startswith("lossless: ")
    (found,) = part(result, "exact")["data"]["shapes"]
    assert found["configured_shape"].startswith("a tree of 6 ")
    assert found["shape"] == f"a tree of {shape}"
    assert found["outcomes_by_accepted_tokens"].keys() == {"0", "1", "2"}


def test_dynamic_trees_and_lengths_that_adapt(certify: Run) -> None:
    for option in ("draft.shape=dynamic", "draft.k=auto"):
        assert certify(*SELF, *WARM, option).lines[-1].startswith("lossless: ")


def test_every_kind_of_proposal_of_a_cascade(certify: Run, part: Part) -> None:
    second = "draft.second={name:self,exit_layer:3}"
    result = certify("draft=cascade", second, *WARM, "verifier=ratio")
    assert result.lines[-1].startswith("lossless: ")
    shapes = {shape["shape"] for shape in part(result, "exact")["data"]["shapes"]}
    assert {"a chain of 3 given tokens", "a chain of 3 drawn tokens"} <= shapes


@pytest.mark.usefixtures("biased")
@pytest.mark.parametrize(
    ("verifier", "distance", "where"),
    [
        ("reluctant", 0.035, {"exact", "fit"}),
        ("hot_bonus", 0.12, {"exact"}),
        ("raw_match", 0.12, {"exact", "fit"}),
        ("again", 0.12, {"exact"}),
    ],
)
def test_a_biased_verifier_fails(
    verifier: str, distance: float, where: set[str], certify: Run, part: Part
) -> None:
    options = ("model.std=0.1", f"task.distance={distance}")
    result = certify(*SELF, *WARM, *options, verifier={"name": verifier})
    assert result.lines[-1].startswith("failed: ")
    assert result.failed == result.lines[-1]
    assert result.metrics["exactness"] == "diverged"
    broken = {name for name in names(result) if part(result, name)["holds"] is False}
    assert broken >= where
    assert "float64_greedy" not in broken


@pytest.mark.usefixtures("biased")
def test_a_verifier_that_accepts_too_much_fails_when_greedy(certify: Run, part: Part) -> None:
    result = certify(*SELF, verifier={"name": "greedy_tail"})
    assert result.failed is not None
    assert part(result, "exact")["holds"] is False
    found = part(result, "float64_greedy")
    assert found["holds"] is False
    assert any(not d["explained_by_rounding"] for d in found["data"]["divergences"])
    assert result.metrics["exact_match"] < 1
    own = part(result, "own_greedy")
    assert own["holds"] is None, "the run's own dtype is only reported"
    assert all(d["margin"] > 0 for d in own["data"]["divergences"])
    assert "first divergence at token" in own["summary"]


@pytest.mark.usefixtures("biased")
def test_a_draft_that_lies_about_its_distribution_fails(certify: Run, part: Part) -> None:
    result = certify(*SELF, *WARM, "verifier=ratio", draft={"name": "liar"})
    assert part(result, "exact")["holds"] is True
    assert part(result, "fit")["holds"] is False
    assert result.failed is not None


@pytest.mark.usefixtures("biased")
def test_a_loop_without_processors_fails(certify: Run, part: Part) -> None:
    result = certify(*SELF, *WARM, "verifier=ratio", engine={"name": "raw"})
    assert part(result, "fit")["holds"] is False
    assert result.failed is not None


def test_a_lossy_verifier_says_by_how_much(certify: Run, part: Part) -> None:
    result = certify(*SELF, *WARM, "verifier=typical")
    assert result.lines[-1].startswith("lossy: ")
    assert "total variation" in result.lines[-1]
    assert result.failed is None
    assert result.metrics["exactness"] == "diverged"
    assert part(result, "fit")["data"]["first_token"]["distance"] > 0.1


def test_a_lossy_verifier_that_changes_nothing(certify: Run) -> None:
    result = certify(*SELF, "verifier=typical")
    assert result.lines[-1].startswith("lossy: ")
    assert "nothing diverged" in result.lines[-1]
    assert result.metrics["exactness"] == "checked"


def test_what_does_not_fit_the_budget_is_made_smaller_and_said(
    certify: Run, part: Part, capsys: pytest.CaptureFixture[str]
) -> None:
    result = certify(*SELF, *WARM, "verifier=ratio", "task.distance=0.005", "task.budget=1.5")
    found = part(result, "fit")
    assert found["data"]["draws"] < 100_000
    assert found["data"]["detects_total_variation"] > 0.005
    assert any("task.budget" in line for line in found["notes"])
    assert any("task.budget" in line for line in result.lines[:-1])
    told = capsys.readouterr().err
    assert "certify: about" in told
    assert "task.budget=1.5 leaves" in told


def test_float64_of_the_first_layers(
    certify: Run, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(float64, "layers_that_fit", lambda *_: 2)
    result = certify("draft=self", "draft.exit_layer=1")
    found = part(result, "float64_greedy")
    assert found["holds"] is True
    assert found["notes"] == ("the first 2 of 4 layers, which fit into memory",)
    assert any("first 2 of 4 layers" in line for line in result.lines)


@pytest.mark.parametrize(("fit", "why"), [(0, "does not fit"), (2, "draft.exit_layer=3")])
def test_float64_left_out(
    fit: int, why: str, certify: Run, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(float64, "layers_that_fit", lambda *_: fit)
    result = certify(*SELF)
    assert part(result, "float64_greedy")["holds"] is None
    assert any("left out" in line and why in line for line in result.lines)
    assert result.lines[-1].startswith("lossless: ")
    assert part(result, "own_greedy")["holds"] is True


def test_without_float64_the_runs_own_dtype_must_hold(
    certify: Run, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths that are committed without moving their key/values, in a model of any size."""
    monkeypatch.setattr(float64, "layers_that_fit", lambda *_: 0)
    monkeypatch.setattr(SlotCache, "keep", lambda cache, path, counts: cache.advance(counts))
    tree = ("draft.shape=static", "draft.widths=[3,2]", "draft.k=2")
    result = certify(*SELF, *tree, "model.dtype=float32", "max_new_tokens=30")
    assert part(result, "own_greedy")["holds"] is False
    assert result.lines[-1].startswith("failed: greedy tokens in float32 equal")
    assert result.metrics["exactness"] == "diverged"


def test_the_verifier_alone_proves_nothing(certify: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = LeftOut("own_greedy", "greedy tokens", "left out: for a reason")
    monkeypatch.setattr(plan, "_greedy", lambda *_, **__: left_out)
    result = certify(*SELF)
    assert result.lines[-1].startswith("incomplete: decoding with the model could not be checked")
    assert result.failed == result.lines[-1]
    assert result.metrics["exactness"] == "unchecked"


def test_the_run_writes_its_certificate_and_fails(
    composed: Callable[..., dict[str, Any]], biased: None, tmp_path: Path
) -> None:
    cfg = composed(*SELF, *WARM)
    cfg["verifier"] = {"name": "reluctant"}
    cfg["plugins"] = ["certify_biased"]
    assert run(cfg, tmp_path, {}) == 1
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    results = json.loads((tmp_path / "results.json").read_text())
    assert certificate["verdict"] == "failed"
    assert certificate["configuration"]["verifier"] == {"name": "reluctant"}
    assert results["certificate"] == certificate["line"]
    assert results["exactness"] == "diverged"


def test_two_ranks_with_their_own_prompts(
    composed: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    model = ("model=tiny_mixtral", "model.layers=2", "draft=self", "draft.exit_layer=1")
    options = ("parallel=ep2", "verifier=ratio", "task.distance=0.2", "max_new_tokens=4")
    assert run(composed(*model, *options, *WARM), tmp_path, {}) == 0
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert certificate["verdict"] == "lossless"
    parts = {part["name"]: part for part in certificate["parts"]}
    assert parts.keys() == {"exact", "float64_greedy", "own_greedy", "fit"}
    assert parts["float64_greedy"]["data"]["equal_prompts"] == 3
    assert parts["fit"]["data"]["accepted"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.0}, "task.budget=0.0"),
        ({"distance": 0.0}, "task.distance"),
        ({"significance": 1.0}, "task.significance"),
    ],
)
def test_wrong_options(options: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Certify.Config(**options)
