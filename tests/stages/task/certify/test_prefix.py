import torch

from draftmesh.registry.contracts.request import Request
from draftmesh.stages.task.certify.prefix import LONGEST, Prefix, interest, pieces, prefix


def request(*tokens: int) -> Request:
    return Request("p", "", tokens, 0, 0, 8)


def test_pieces_are_short_and_hold_no_token_that_ends_a_completion() -> None:
    found = pieces([request(*range(40)), request(7, 8)], ends=(39, 12))
    assert all(len(piece) >= 2 and 2 * len(piece) + 1 <= LONGEST for piece in found)
    assert not {39, 12} & {token for piece in found for token in piece}
    assert (7, 8) in found
    assert len(set(found)) == len(found) >= 4


def test_a_prompt_of_one_token_still_gives_a_piece() -> None:
    assert pieces([request(5)], ends=(0, 1)) == [(2, 2)]


def test_the_last_token_is_forced() -> None:
    begun = prefix((4, 5, 6))
    assert begun == Prefix((4, 5), 6)
    assert begun.tokens == (4, 5, 6)
    first, second = begun.requests(range(3, 5), seed=9, new_tokens=2)
    assert (first.token_ids, first.index, first.seed, first.max_new_tokens) == ((4, 5), 3, 9, 2)
    assert second.index == 4


def test_what_tests_a_draft_best() -> None:
    flat, sure = torch.full((4,), 0.25), torch.tensor([1.0, 0, 0, 0])
    half = torch.tensor([0.5, 0.5, 0, 0])
    never = torch.tensor([0.0, 0, 0.5, 0.5])
    assert interest(half, flat) > interest(half, half) > interest(half, None)
    assert interest(half, flat) > interest(half, never) > interest(half, None)
    assert interest(sure, flat) == 0, "nothing varies"
