from collections import Counter

import pytest

from draftmesh.pipeline.prediction import chain_tokens, predict, tree_tokens
from draftmesh.registry.contracts.counters import Counters


def test_rule_of_thumb(counters: Counters) -> None:
    a, k, cost = 11 / 40, 4, 0.02 / 0.04
    found = predict(counters, plain_step_s=0.04)
    assert found["predicted_speedup_seed"] == pytest.approx(a * k / (1 + cost))


def test_leviathan_with_measured_costs(counters: Counters) -> None:
    alpha, k, plain = 11 / 20, 4, 0.04
    c, v = 0.02 / k / plain, 0.05 / plain
    expected = (1 - alpha ** (k + 1)) / ((1 - alpha) * (k * c + v))
    assert predict(counters, plain)["predicted_speedup"] == pytest.approx(expected)


def test_without_a_plain_step_there_is_only_the_rule(counters: Counters) -> None:
    found = predict(counters)
    assert found["predicted_speedup"] is None
    assert found["predicted_speedup_seed"] == predict(counters, 0.05)["predicted_speedup_seed"]


def test_a_tree_counts_the_depths_it_reached(counters: Counters) -> None:
    # P(depth >= 1) = .6, >= 2: .3, >= 3: .1, >= 4: .1
    assert tree_tokens(counters) == pytest.approx(1 + 0.6 + 0.3 + 0.1 + 0.1)
    found = predict(counters, plain_step_s=0.04, tree=True)
    assert found["predicted_speedup"] == pytest.approx(2.1 * 0.04 / (0.02 + 0.05))


def test_a_draft_that_is_always_right() -> None:
    perfect = Counters(steps=5, rounds=5, drafted=15, accepted=15, verify_s=1, draft_s=0)
    perfect.histogram = Counter({3: 5})
    perfect.offered_at = Counter({0: 5, 1: 5, 2: 5})
    perfect.accepted_at = perfect.offered_at.copy()
    assert chain_tokens(perfect) == 4
    assert predict(perfect, 0.2)["predicted_speedup"] == pytest.approx(4)


def test_plain_decoding_and_no_decoding() -> None:
    plain = predict(Counters(steps=3, rounds=3, verify_s=1))
    assert set(plain.values()) == {1.0}
    assert set(predict(Counters()).values()) == {None}
