from typing import Any

import pytest
import torch

from draftmesh.registry import build
from draftmesh.registry.contracts.sampling import History
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.task.certify.watch import Watched

VOCAB = 6


def sampler(**options: Any) -> Any:
    return build("sampling", {"name": "processors", **options}, VOCAB, VOCAB)


@pytest.fixture
def history() -> History:
    """A row after (1, 2) with a tree, and a row after (1, 2, 3) with another."""
    return History(
        torch.tensor([[1, 2, 0], [1, 2, 3]]),
        torch.tensor([2, 3]),
        torch.tensor([[3, 4, 5], [4, 5, 5]]),
        torch.tensor([[-1, -1, 1], [-1, 0, 1]]),
        torch.tensor([2, 2]),
    )


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(2, 4, VOCAB, generator=torch.Generator().manual_seed(0))


def test_distributions_are_found_at_the_root_and_down_the_tree(
    history: History, logits: torch.Tensor
) -> None:
    inner = sampler(temperature=0.7)
    watched = Watched(inner, [(1, 2), (1, 2, 3), (1, 2, 4, 5), (1, 2, 3, 4, 5), (2,), (1, 2, 5)])
    p = inner(logits).probs.double()
    assert torch.equal(watched(logits, history).probs, inner(logits).probs)
    assert watched.means(Solo()).keys() == {(1, 2), (1, 2, 3), (1, 2, 4, 5), (1, 2, 3, 4, 5)}
    means = watched.means(Solo())
    assert torch.equal(means[1, 2], p[0, 0])
    assert torch.equal(means[1, 2, 3], (p[0, 1] + p[1, 0]) / 2)
    assert torch.equal(means[1, 2, 4, 5], p[0, 3])
    assert torch.equal(means[1, 2, 3, 4, 5], p[1, 2])


def test_greedy_distributions_are_the_softmax(history: History, logits: torch.Tensor) -> None:
    watched = Watched(sampler(), [(1, 2)])
    watched(logits, history)
    mean = watched.means(Solo())[1, 2]
    torch.testing.assert_close(mean, logits[0, 0].softmax(-1).double(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_only_the_token_after_the_prompt_is_forced(
    temperature: float, history: History, logits: torch.Tensor
) -> None:
    inner = sampler(temperature=temperature)
    forced, free = Watched(inner, forced={(1, 2): 5})(logits, history), inner(logits)
    if temperature:
        assert forced.probs[0, 0].tolist() == [0, 0, 0, 0, 0, 1]
        assert torch.equal(forced.probs[0, 1:], free.probs[0, 1:])
        assert torch.equal(forced.probs[1], free.probs[1])
    else:
        assert forced.tokens[0].tolist() == [5, *free.tokens[0, 1:].tolist()]
        assert torch.equal(forced.tokens[1], free.tokens[1])


def test_processors_that_look_back_still_do(history: History, logits: torch.Tensor) -> None:
    inner = sampler(temperature=1.0, repetition_penalty=2.0)
    expected = inner(logits, history).probs
    assert torch.equal(Watched(inner)(logits, history).probs, expected)
    assert not torch.equal(expected, sampler(temperature=1.0)(logits).probs)
