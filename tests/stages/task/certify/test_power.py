import pytest
import torch

from draftmesh.stages.task.certify.power import (
    POWER,
    critical,
    detectable,
    draws_needed,
    noncentrality,
    tail,
)


@pytest.mark.parametrize(
    ("statistic", "freedom", "p"),
    [(3.841459, 1, 0.05), (18.307038, 10, 0.05), (29.588298, 10, 0.001), (0.0, 4, 1.0)],
)
def test_tail_of_the_chi_square_table(statistic: float, freedom: int, p: float) -> None:
    assert tail(statistic, freedom) == pytest.approx(p, rel=1e-5)
    if statistic:
        assert critical(freedom, p) == pytest.approx(statistic, rel=1e-5)


def test_noncentrality_of_one_degree_of_freedom_is_that_of_a_normal_test() -> None:
    z = torch.distributions.Normal(0.0, 1.0)
    sum_of_quantiles = z.icdf(torch.tensor(0.975)) + z.icdf(torch.tensor(POWER))
    # The normal test's other side adds next to nothing.
    assert noncentrality(1, 0.05) == pytest.approx(float(sum_of_quantiles) ** 2, rel=1e-3)


@pytest.mark.parametrize("cells", [2, 6, 16])
def test_the_promised_power(cells: int) -> None:
    """Simulated: a distribution at the promised distance is found about as often as promised."""
    significance, distance = 0.01, 0.05
    draws = draws_needed(distance, cells, significance)
    assert detectable(draws, cells, significance) == pytest.approx(distance, rel=1e-3)
    p = torch.full((cells,), 1 / cells, dtype=torch.float64)
    half = cells // 2
    shift = torch.zeros_like(p)
    shift[:half], shift[-half:] = distance / half, -distance / half
    generator = torch.Generator().manual_seed(0)
    trials = torch.multinomial((p + shift).expand(400, -1), draws, True, generator=generator)
    counts = torch.stack([line.bincount(minlength=cells) for line in trials]).double()
    statistics = ((counts - draws * p) ** 2 / (draws * p)).sum(1)
    found = float((statistics > critical(cells - 1, significance)).double().mean())
    assert found == pytest.approx(POWER, abs=0.06)
