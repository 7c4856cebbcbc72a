import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import LogitsProcessor, MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from draftmesh.stages.sampling.candidates import Candidates
from draftmesh.stages.sampling.truncation import min_p, top_k, top_p


def kept(found: Candidates, scores: Tensor) -> list[float]:
    """The scores that are kept, after a look at their ids."""
    assert found.tokens is not None
    assert torch.equal(found.scores, scores[found.tokens])
    return sorted(s for s in found.scores.tolist() if s > float("-inf"))


def theirs(processor: LogitsProcessor, scores: Tensor) -> list[float]:
    """Scores, not ids: which of several tied tokens stay depends on their unstable sort."""
    left = processor(torch.empty(1, 0, dtype=torch.long), scores.unsqueeze(0))[0]
    return sorted(s for s in left.tolist() if s > float("-inf"))


def peaked(vocab: int, seed: int, spread: float = 2.5) -> Tensor:
    return torch.randn(vocab, generator=torch.Generator().manual_seed(seed)) * spread


def tied(vocab: int, seed: int) -> Tensor:
    """Logits as coarse as bfloat16's, with many ties everywhere."""
    return (peaked(vocab, seed) * 2).round() / 2


SHAPES = {
    "peaked": peaked(4000, 1, 4.0),
    "wide": peaked(4000, 2, 1.0),
    "tied": tied(4000, 3),
    "flat": torch.zeros(10),
    "flat and long": torch.zeros(4096),
    "one above": torch.tensor([0.0] * 9 + [1e-3]),
    "certain": torch.tensor([0.0] * 9 + [200.0]),
    "two tokens": torch.tensor([0.0, 0.0]),
    "some impossible": torch.where(torch.arange(50) % 3 == 0, float("-inf"), peaked(50, 4)),
}


@pytest.mark.parametrize("mass", [1e-9, 0.1, 0.3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-7])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_top_p_is_that_of_transformers(shape: str, mass: float, dtype: torch.dtype) -> None:
    scores = SHAPES[shape].to(dtype)
    ours = kept(top_p(Candidates(scores), mass), scores)
    assert ours == theirs(TopPLogitsWarper(mass), scores)
    assert ours


@pytest.mark.parametrize("k", [1, 2, 7, 50, 10_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_top_k_is_that_of_transformers(shape: str, k: int) -> None:
    scores = SHAPES[shape]
    expected = theirs(TopKLogitsWarper(k), scores)
    assert kept(top_k(Candidates(scores), k), scores) == expected
    assert len(expected) >= min(k, int(scores.isfinite().sum()))


@pytest.mark.parametrize("ratio", [1e-12, 1e-3, 0.05, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_min_p_is_that_of_transformers(shape: str, ratio: float) -> None:
    scores = SHAPES[shape]
    assert kept(min_p(Candidates(scores), ratio), scores) == theirs(MinPLogitsWarper(ratio), scores)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(2, 300),
    st.integers(0, 10_000),
    st.sampled_from([0.5, 1.0, 3.0, 8.0]),
    st.floats(0.01, 0.999),
    st.booleans(),
)
def test_top_p_on_random_lines(
    vocab: int, seed: int, spread: float, mass: float, tie: bool
) -> None:
    scores = tied(vocab, seed) if tie else peaked(vocab, seed, spread)
    scores = scores.double()
    assert kept(top_p(Candidates(scores), mass), scores) == theirs(TopPLogitsWarper(mass), scores)


def test_the_bound_removes_most_tokens_before_the_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    sort = Tensor.argsort

    def counting(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        widths.append(len(self))
        return sort(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Tensor, "argsort", counting)
    scores = peaked(49_152, 5, 4.0)
    found = top_p(Candidates(scores), 0.9)
    assert widths
    assert widths[0] < 2000
    assert len(found.scores) <= widths[0]
