from draftmesh.registry.contracts.request import Request
from draftmesh.stages.task.certify.sizes import fit_requests

REQUESTS = [Request(f"p{i}", "", (1,), i, 0, 64) for i in range(10)]


def test_everything_fits() -> None:
    sized = fit_requests(REQUESTS, 640)
    assert sized.requests == REQUESTS
    assert sized.note is None


def test_fewer_prompts_first() -> None:
    sized = fit_requests(REQUESTS, 400)
    assert sized.requests == REQUESTS[:6]
    assert sized.note == "6 of 10 prompts"


def test_then_fewer_tokens_but_never_nothing() -> None:
    sized = fit_requests(REQUESTS, 80)
    assert [r.max_new_tokens for r in sized.requests] == [20] * 4
    assert sized.note == "4 of 10 prompts, at most 20 tokens each"
    assert [r.max_new_tokens for r in fit_requests(REQUESTS, 0).requests] == [8] * 4
    assert [r.index for r in fit_requests(REQUESTS, 0).requests] == [0, 1, 2, 3]
