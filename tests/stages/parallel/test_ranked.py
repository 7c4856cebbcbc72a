"""Asserts on what the cases of `ranked_cases` and `ranked_algebra` found in 2, 3 and 4 ranks."""

from typing import Any

import pytest
import ranked_algebra
import ranked_cases
from ranked import results_of
from ranked_models import MOE

EQUAL = [
    (world, name)
    for world, cases in ranked_cases.CASES.items()
    for name, case in cases.items()
    if case.function.endswith("logits_equal")
]
WITH_EXPERTS = [
    (world, name)
    for world, name in EQUAL
    if ranked_cases.CASES[world][name].arguments["model"] in MOE or "upcycled" in name
]
DISPATCHES = [n for n, c in ranked_algebra.CASES[4].items() if c.function.endswith("dispatch")]
REFUSED = {
    (2, "wrong route"): "MixtralForCausalLM computes something else when it is split",
    (2, "dense refused"): "ffn=dense has no experts for parallel.ep=2: use ffn=moe",
    (2, "moe as dense refused"): "ffn=dense: MixtralForCausalLM has experts: use ffn=auto",
    (2, "unknown dispatch"): "did you mean all_to_all?",
    (2, "grouped_mm refused"): "has no float64 kernel; use parallel.compute=loop",
    (4, "too many ranks"): "parallel.ep=4: the model has only 2 experts; lower parallel.ep",
}


def values(world: int, name: str) -> list[Any]:
    found = results_of(world)[name]
    assert not any(isinstance(value, str) and value.startswith("failed") for value in found), found
    return found


@pytest.mark.parametrize(("world", "name"), EQUAL)
def test_split_models_compute_what_the_whole_one_does(world: int, name: str) -> None:
    tolerance = {"float32": 1e-4, "bfloat16": 0.3}.get(name.split()[-1], 1e-11)
    for value in values(world, name):
        assert value["difference"] < tolerance
        assert value["spread"] > 0.5
        assert value["change"] <= tolerance


def test_rows_of_a_split_lm_head_are_those_of_the_whole_one() -> None:
    assert values(2, "tp2 rows") == [0.0, 0.0]


@pytest.mark.parametrize(("world", "name"), EQUAL)
def test_counted_bytes_equal_the_formula(world: int, name: str) -> None:
    found = values(world, name)
    for category in ("experts", "tensor"):
        counted = sum(value["bytes"].get(category, 0) for value in found)
        assert counted == sum(value["predicted"].get(category, 0) for value in found)
    assert sum(sum(value["bytes"].values()) for value in found) > 0


@pytest.mark.parametrize("name", ["ep4 gpt_oss", "ep4 mixtral", "ep4 all_to_all padded"])
def test_counted_bytes_follow_from_the_recorded_choices(name: str) -> None:
    found = values(4, name)
    row, experts = 32 * 8, len(found[0]["owners"])
    total = 0
    for rank, value in enumerate(found):
        others = sum(owner != rank for owner in value["owners"])
        for tokens in value["choices"]:
            away = sum(value["owners"][e] != rank for chosen in tokens for e in chosen)
            total += 2 * away * row + others * 8
    assert experts in (6, 8)
    assert total == sum(value["bytes"]["experts"] for value in found)


@pytest.mark.parametrize(("world", "name"), WITH_EXPERTS)
def test_only_real_tokens_are_counted(world: int, name: str) -> None:
    found = values(world, name)
    summary = found[0]["summary"]
    routed = [sum(layer) for layer in summary.load]
    tokens = sum(value["valid"] for value in found)
    assert len(set(routed)) == 1
    assert routed[0] % tokens == 0
    assert 1 <= routed[0] // tokens <= 4
    assert 0 < summary.expert_load_balance <= 1
    assert 1 <= summary.unique_experts_per_forward <= len(summary.load[0])
    assert min(summary.dispatch_ms, summary.expert_ms, summary.combine_ms) > 0


@pytest.mark.parametrize(("place", "words"), REFUSED.items())
def test_impossible_plans_say_what_to_change(place: tuple[int, str], words: str) -> None:
    for message in values(*place):
        assert words in message


@pytest.mark.parametrize("model", MOE)
def test_ranks_hold_only_their_experts(model: str) -> None:
    (two, four) = (values(n, f"ep{n} {model}") for n in (2, 4))
    assert all(value["parameters"] < value["whole"] for value in two)
    assert max(v["parameters"] for v in four) < min(v["parameters"] for v in two)


def test_uneven_key_value_groups_are_split_two_to_one() -> None:
    found = values(2, "tp2 llama_9_3")
    assert found[0]["parameters"] > found[1]["parameters"] > 0.4 * found[0]["whole"]
    assert found[0]["notes"] == []
    assert all(value["tied"] for value in found)


def test_too_few_key_value_heads_are_replicated_and_said() -> None:
    (note,) = values(4, "tp4 llama_9_3")[0]["notes"]
    assert "attention has only 3 key/value heads and is computed by every rank" in note
    assert "feed-forward and vocabulary split" in note
    (note,) = values(2, "tp2 phi3")[0]["notes"]
    assert "no separate q, k, v and o projections" in note
    assert "feed-forward" not in note
    (note,) = values(2, "tp2 afmoe")[0]["notes"]
    assert "more than q, k, v and o projections" in note


def test_collectives_per_forward() -> None:
    layers = 2
    two = values(2, "tp2 llama")[0]["calls"]
    assert two == {"tensor": 2 * layers + 2}
    assert values(2, "ep2 mixtral")[0]["calls"] == {"experts": 3 * layers}
    tp2 = values(2, "tp2 mixtral")[0]["calls"]
    assert tp2 == {"tensor": layers + 2, "experts": layers}


def test_upcycling_leaves_outputs_as_they_were() -> None:
    for value in values(2, "ep2 llama upcycled"):
        assert value["difference"] == 0
        (note,) = value["notes"]
        assert "2 blocks of 8 equal experts, top-1" in note


@pytest.mark.parametrize("name", DISPATCHES)
def test_dispatchers_return_each_token_its_experts_sum(name: str) -> None:
    found = values(4, name)
    plan = ranked_algebra.CASES[4][name].plan
    for value in found:
        assert value["difference"] < 1e-12
        assert value["shape"] == (value["tokens"], ranked_algebra.HIDDEN)
    assert sum(value["bytes"] for value in found) == sum(value["predicted"] for value in found)
    pairs = sum(value["tokens"] for value in found) * ranked_algebra.TOP_K // plan.tp
    assert sum(value["computed"] for value in found) == pairs * plan.etp


def test_pairs_and_tokens_move_different_amounts() -> None:
    sent = {
        name: sum(value["bytes"] for value in values(4, f"{name} ep4 one expert"))
        for name in ranked_algebra.DISPATCHERS
    }
    assert len(set(sent.values())) == 3


def test_agreements_of_a_mesh() -> None:
    mixed = values(4, "agree ep2tp2")
    assert [v["decided"] for v in mixed] == [
        [[[first, 3]], [first % 2 == 0]] for first in (0, 0, 2, 2)
    ]
    assert mixed[0]["dtypes"] == ["torch.int64", "torch.bool"]
    assert {v["agreed"] for v in mixed} == {(3, 7)}
    assert [v["own"] for v in mixed] == [list("aceg")] * 2 + [list("bdf")] * 2
    assert mixed[0]["restored"] == list("abcdefg")
    assert mixed[3]["groups"] == [(2, 3), (1, 3), (2, 3)]
    split = values(4, "agree ep4")
    assert [v["own"] for v in split] == [list("ae"), list("bf"), list("cg"), ["d"]]
    assert split[0]["restored"] == list("abcdefg")


def test_collectives_in_every_dtype() -> None:
    for value in values(4, "collectives"):
        assert value == {"wrong": [], "empty": (0, 4)}
