import pytest
import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.task.certify.divergence import Divergence, first_difference
from draftmesh.stages.task.certify.rounding import judge

REQUEST = Request("p", "", (1, 2, 3), 7, 11, 5)


def softmax(*logits: float) -> Tensor:
    return torch.tensor(logits, dtype=torch.float64).softmax(-1)


def greedy(ours: int | None, plain: Tensor, dtype: torch.dtype) -> bool:
    return judge(Divergence(REQUEST, (4,), ours, 0), plain, plain, True, dtype).explained


def test_first_difference() -> None:
    mine, other = Completion(REQUEST, [4, 5, 6]), Completion(REQUEST, [4, 7, 6])
    found = first_difference(mine, other)
    assert found == Divergence(REQUEST, (4,), 5, 7)
    assert found.at == 1
    assert found.place == (1, 2, 3, 4)
    assert first_difference(mine, Completion(REQUEST, [4, 5])) == Divergence(
        REQUEST, (4, 5), 6, None
    )
    assert first_difference(mine, mine) is None


def test_greedy_ties_are_rounding_and_clear_choices_are_not() -> None:
    tie, clear = softmax(2.0, 1.999, -3.0), softmax(2.0, 1.0, -3.0)
    assert greedy(1, tie, torch.float32)
    assert not greedy(2, tie, torch.float32), "a third token is not in the tie"
    assert not greedy(1, tie, torch.float64)
    assert not greedy(1, clear, torch.float32)
    assert greedy(1, clear, torch.bfloat16)
    assert not greedy(None, tie, torch.float32), "one of them ended early"


def drawn(probs: Tensor) -> int:
    chance = NoiseChance.of([REQUEST], probs.device)
    at = torch.tensor([4])
    return int(chance.sample(probs[None], torch.zeros(1).long(), at, Stream.TARGET))


@pytest.fixture
def edge() -> tuple[Tensor, Tensor]:
    """Plain decoding's distribution, and one so near that only this noise tells them apart."""
    probs = softmax(*torch.randn(50, generator=torch.Generator().manual_seed(3)).tolist())
    token = drawn(probs)
    other = probs.clone()
    other[token] = 0
    rival = drawn(other)
    low, high = probs[token], probs[token] * 0
    for _ in range(60):
        middle = (low + high) / 2
        other[token] = middle
        low, high = (middle, high) if drawn(other) == token else (low, middle)
    near = probs.clone()
    near[token] = low * 1.0001
    other[token] = low * 0.9999
    assert drawn(near) == token
    assert drawn(other) == rival
    return near / near.sum(), other / other.sum()


def test_sampled_tokens_that_follow_from_the_loops_distribution(
    edge: tuple[Tensor, Tensor],
) -> None:
    plain, loop = edge
    found = Divergence(REQUEST, (4,), drawn(loop), drawn(plain))
    assert judge(found, loop, plain, False, torch.float32).explained
    assert judge(found, None, plain, False, torch.float32).explained
    wrong = Divergence(REQUEST, (4,), 49, drawn(plain))
    assert not judge(wrong, loop, plain, False, torch.float32).explained
    assert not judge(wrong, None, plain, False, torch.float32).explained


def test_sampled_tokens_from_another_distribution() -> None:
    plain, loop = softmax(0.0, 1.0, 2.0), softmax(0.0, 2.0, 0.5)
    found = Divergence(REQUEST, (4,), drawn(loop), drawn(plain))
    assert not judge(found, loop, plain, False, torch.float32).explained
    assert judge(found, loop, plain, False, torch.float32).distance > 0.3


def test_a_place_that_plain_decoding_never_reached() -> None:
    found = Divergence(REQUEST, (4,), 1, 0)
    assert not judge(found, None, None, True, torch.bfloat16).explained
