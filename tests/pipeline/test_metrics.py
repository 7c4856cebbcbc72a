from collections.abc import Callable
from dataclasses import replace

import pytest

from draftmesh.pipeline import metrics
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.request import Completion

MakeCompletion = Callable[..., Completion]


def test_summary_by_hand(make_completion: MakeCompletion, counters: Counters) -> None:
    done = [
        make_completion([1, 2, 3], "a", ttft=0.1, latency=0.6),
        make_completion([1, 1], "b", ttft=0.2, latency=0.3),
        make_completion([1], "c", ttft=0.3, latency=0.3),
    ]
    found = metrics.summarise(done, counters)
    assert found["new_tokens"] == 9
    assert found["throughput_tok_s"] == pytest.approx(9 / 1.0)
    assert found["ttft_ms"] == pytest.approx(200)
    assert found["tpot_ms"] == pytest.approx((0.5 / 5 + 0.1 / 1) / 2 * 1000)
    assert found["latency_p50_ms"] == pytest.approx(300)
    assert found["latency_p95_ms"] == pytest.approx(570)
    assert found["acceptance_rate"] == pytest.approx(11 / 40)
    assert found["alpha"] == pytest.approx(11 / (11 + 9))
    assert found["draft_ms"] == pytest.approx(20)
    assert found["verify_ms"] == pytest.approx(50)
    assert found["overhead_ms"] == pytest.approx(5)
    assert found["target_forwards"] == 12


def test_acceptance_is_pooled_over_steps_without_the_prefill(
    make_completion: MakeCompletion,
) -> None:
    done = [make_completion([1, 5]), make_completion([1, 1, 1, 1])]
    assert metrics.mean_acceptance_length(done) == (5 + 1 + 1 + 1) / 4


def test_plain_decoding_accepts_nothing(make_completion: MakeCompletion) -> None:
    found = metrics.summarise([make_completion([1, 1, 1])], Counters(steps=2, rounds=2))
    assert found["acceptance_rate"] == 0
    assert found["alpha"] == 0
    assert found["mean_acceptance_length"] == 1


def test_no_steps_means_no_value(make_completion: MakeCompletion) -> None:
    found = metrics.summarise([make_completion([1])], Counters(prefill_s=0.5))
    assert found["mean_acceptance_length"] is None
    assert found["verify_ms"] is None
    assert found["tpot_ms"] is None
    assert found["throughput_tok_s"] == 2
    assert metrics.summarise([], Counters())["latency_p95_ms"] is None


def test_exact_match_compares_prompt_by_prompt(make_completion: MakeCompletion) -> None:
    a, b = make_completion([1, 2], "a"), make_completion([3], "b")
    other = make_completion([4], "b")
    assert metrics.exact_match([a, b], [b, a]) == 1
    assert metrics.exact_match([a, b], [a, other]) == 0.5
    assert metrics.exact_match([a, b], [a]) == 0.5
    same = replace(b, request=replace(b.request, id="a"))
    assert metrics.exact_match([a, same], [a, same]) == 1, "ids may repeat"


def test_percentiles_interpolate() -> None:
    assert metrics.percentile([4, 1, 3, 2], 50) == 2.5
    assert metrics.percentile([7], 95) == 7
    assert metrics.percentile([], 50) is None


def test_side_by_side_groups_share_the_clock(counters: Counters) -> None:
    slower = Counters(steps=3, rounds=3, drafted=6, accepted=2, verify_s=5, target_forwards=4)
    slower.histogram.update({0: 1, 1: 2})
    both = counters.merge(slower)
    assert (both.steps, both.drafted, both.accepted) == (13, 46, 13)
    assert both.histogram == {0: 5, 1: 5, 2: 2, 4: 1}
    assert (both.rounds, both.target_forwards, both.wall_s) == (3, 4, 5)
