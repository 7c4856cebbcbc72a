import pytest

from draftmesh.registry.contracts.request import Request
from draftmesh.stages.task.certify.sizes import Pace, fit_requests

REQUESTS = [Request(f"p{i}", "", (1,) * 20, i, 0, 64) for i in range(10)]
PACE = Pace(0.1, 1.0)


def test_cost() -> None:
    assert PACE.cost(REQUESTS) == pytest.approx([66.0] * 10)


def test_everything_fits() -> None:
    sized = fit_requests(REQUESTS, PACE, sum(PACE.cost(REQUESTS)))
    assert sized.requests == REQUESTS
    assert sized.note is None


def test_fewer_prompts_first() -> None:
    sized = fit_requests(REQUESTS, PACE, 6.5 * 66)
    assert sized.requests == REQUESTS[:6]
    assert sized.note == "6 of 10 prompts"


def test_then_fewer_tokens_but_never_nothing() -> None:
    sized = fit_requests(REQUESTS, PACE, 88.0)
    assert [r.max_new_tokens for r in sized.requests] == [20] * 4
    assert sized.note == "4 of 10 prompts, at most 20 tokens each"
    least = fit_requests(REQUESTS, PACE, 0.0).requests
    assert [(r.index, r.max_new_tokens) for r in least] == [(0, 8), (1, 8), (2, 8), (3, 8)]


def test_few_prompts_are_all_kept() -> None:
    sized = fit_requests(REQUESTS[:2], PACE, 24.0)
    assert [r.max_new_tokens for r in sized.requests] == [10, 10]
