import pytest
import torch

from draftmesh.stages.sampling.enumerated import EnumeratedChance
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors

ROWS = torch.tensor([0, 0, 1, 1, 1])
POSITIONS = torch.tensor([4, 4, 4, 5, 9])


def chance():
    return NoiseChance(torch.tensor([7, 8]), torch.tensor([0, 1]))


def test_the_best_score_is_what_sample_draws():
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        probs = torch.rand(5, 50, generator=generator) ** 4
        probs[:, ::3] = 0
        scores = chance().scores(probs, ROWS, POSITIONS + seed, 0)
        assert torch.equal(scores.argmax(-1), chance().sample(probs, ROWS, POSITIONS + seed, 0))
        assert (scores[:, ::3] == 0).all()
        assert (scores >= 0).all()


def test_the_best_few_are_draws_without_replacement():
    """Gumbel top-k: the order of the scores is that of successive draws."""
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    count = 20_000
    rows = torch.zeros(count, dtype=torch.long)
    scores = chance().scores(p.expand(count, 3), rows, torch.arange(count), 0)
    first, second = scores.topk(2).indices.unbind(1)
    found = torch.zeros(3, 3).double()
    found.index_put_((first, second), torch.ones(count).double(), accumulate=True)
    expected = p[:, None] * p / (1 - p[:, None])
    expected.fill_diagonal_(0)
    assert (found / count - expected).abs().max() < 0.015


def test_scores_have_no_list_of_outcomes():
    with pytest.raises(AssertionError, match="cannot be enumerated"):
        EnumeratedChance([]).scores(torch.ones(1, 2), ROWS[:1], POSITIONS[:1], 0)


@pytest.mark.parametrize("options", [{"temperature": 0.7, "top_k": 3}, {"temperature": 1.0}])
def test_log_probs_are_those_of_the_distribution(options):
    logits = torch.randn(2, 3, 9, generator=torch.Generator().manual_seed(0)).double()
    sampler = Processors(SamplingOptions(**options), 9, 8)
    logs = sampler.log_probs(logits)
    torch.testing.assert_close(logs.exp(), sampler(logits).probs)
    assert (logs[..., 8] == -torch.inf).all()


def test_greedy_log_probs_rank_like_the_processed_logits():
    logits = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0)).double()
    sampler = Processors(SamplingOptions(logit_bias={2: 9.0}), 10, 8)
    logs = sampler.log_probs(logits)
    assert logs.shape == (2, 3, 10)
    assert (logs.argmax(-1) == 2).all()
    assert torch.equal(logs.argmax(-1), sampler(logits).tokens)
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(2, 3).double())
    biased = logits.clone()
    biased[..., 2] += 9
    torch.testing.assert_close(logs[..., :8], biased.log_softmax(-1))
