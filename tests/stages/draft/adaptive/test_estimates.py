import pytest

from draftmesh.stages.draft.adaptive.costs import Costs
from draftmesh.stages.draft.adaptive.survival import Survival


def test_shorter_drafts_are_the_beginning_of_longer_ones():
    survival = Survival(4)
    for accepted in [4, 2, 0, 1] * 50:
        survival.record(4, [9], [accepted])
    assert survival.reached(4) == pytest.approx([0.75, 0.5, 0.25, 0.25], abs=0.01)
    assert survival.tokens(2) == pytest.approx(2.25, abs=0.02)


def test_depths_never_tried_go_on_as_those_before():
    survival = Survival(6)
    for accepted in [2, 1, 1, 0] * 50:
        survival.record(2, [9], [accepted])
    first, second, third, *_ = survival.reached(6)
    assert (first, second) == pytest.approx((0.75, 0.25), abs=0.01)
    assert third == pytest.approx(0.25 / 3, abs=0.01)


def test_what_the_budget_cut_off_is_not_a_rejection():
    survival = Survival(4)
    for _ in range(50):
        survival.record(4, [1, 4], [1, 4])
    assert survival.reached(4) == pytest.approx([1.0] * 4)


def test_a_size_that_brings_less_than_its_part_of_a_larger_one():
    survival = Survival(2)
    for _ in range(200):
        survival.record(2, [9], [2])
    before = survival.tokens(1)
    for _ in range(200):
        survival.record(1, [9], [0])
        survival.record(2, [9], [2])
    assert survival.tokens(1) < before - 0.6


def test_the_past_is_forgotten():
    survival = Survival(1)
    for _ in range(1000):
        survival.record(1, [9], [0])
    for _ in range(1000):
        survival.record(1, [9], [1])
    assert survival.reached(1)[0] > 0.95


def test_rounds_that_draft_and_rounds_that_do_not_are_weighed():
    costs = Costs()
    for seconds in (1.0, 1.0, 1.0, 90.0, 1.0, 1.0):
        costs.record(2, seconds, drafted=False)
    for seconds in (4.0, 70.0, 4.0):
        costs.record(2, seconds, drafted=True)
    assert costs.seconds(2) == pytest.approx((6 * 1.0 + 3 * 4.0) / 9)


def test_sizes_not_measured_lie_between_their_neighbours():
    costs = Costs()
    for _ in range(3):
        costs.record(0, 1.0, drafted=True)
    costs.record(4, 3.0, drafted=True)
    assert costs.measured == [0]
    costs.record(4, 3.0, drafted=True)
    assert costs.measured == [0, 4]
    assert [costs.seconds(size) for size in (0, 2, 4, 6)] == [1.0, 2.0, 3.0, 4.0]
    for _ in range(2):
        costs.record(2, 0.5, drafted=True)
    assert costs.seconds(2) == 0.5
    assert costs.seconds(1) == 0.75
    for _ in range(32):
        costs.record(4, 0.1, drafted=True)
    assert costs.seconds(8) == pytest.approx(0.1), "more drafts never cost less than measured"
