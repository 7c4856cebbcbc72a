from collections import Counter

import pytest
import torch

from draftmesh.stages.task.certify.cells import CELLS, fit


def drawn(p: list[float], draws: int, seed: int) -> Counter[int]:
    generator = torch.Generator().manual_seed(seed)
    return Counter(torch.multinomial(torch.tensor(p), draws, True, generator=generator).tolist())


def geometric(base: float, size: int = 40) -> list[float]:
    weights = [base**i for i in range(size)]
    return [w / sum(weights) for w in weights]


def test_p_values_of_true_draws_are_uniform() -> None:
    p = geometric(0.8)
    values = [fit(dict(enumerate(p)), drawn(p, 2000, s), 2000).p_value for s in range(200)]
    assert sum(v < 0.5 for v in values) == pytest.approx(100, abs=25)
    assert sum(v < 0.1 for v in values) == pytest.approx(20, abs=14)


def test_draws_from_another_distribution_are_found() -> None:
    p, other = geometric(0.8), geometric(0.77)
    assert fit(dict(enumerate(p)), drawn(other, 20_000, 0), 20_000).p_value < 1e-4


def test_unlikely_outcomes_and_those_not_listed_are_one_cell() -> None:
    listed = {0: 0.5, 1: 0.3, 2: 0.001}
    found = fit(listed, Counter({0: 500, 1: 300, 2: 1, 77: 199}), 1000)
    assert (found.cells, found.p_value) == (3, 1)
    assert found.statistic == pytest.approx(0, abs=1e-9)
    assert fit(listed, Counter({0: 500, 1: 300 + 200}), 1000).p_value < 1e-12


def test_no_more_cells_than_agreed() -> None:
    p = geometric(0.99)
    assert fit(dict(enumerate(p)), drawn(p, 10_000, 0), 10_000).cells == CELLS


def test_a_tail_too_small_joins_the_least_likely_cell() -> None:
    found = fit({0: 0.7, 1: 0.299}, Counter({0: 700, 1: 300}), 1000)
    assert found.cells == 2
    assert found.statistic == pytest.approx(0, abs=1e-9)


def test_a_certain_outcome_has_nothing_to_test() -> None:
    assert fit({5: 1.0}, Counter({5: 50}), 50).p_value == 1
