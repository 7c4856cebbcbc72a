from fractions import Fraction

import pytest
import torch

from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.stages.sampling.enumerated import outcomes

ROW = torch.zeros(1, dtype=torch.long)


def test_every_outcome_occurs_once_with_its_probability() -> None:
    p = torch.tensor([[0.5, 0.0, 0.25, 0.25]], dtype=torch.float64)

    def run(chance: Chance) -> tuple[int, bool | None]:
        token = int(chance.sample(p * 3, ROW, ROW, Stream.TARGET))
        if token == 0:
            return token, None
        return token, bool(chance.accept(torch.tensor([0.75]), ROW, ROW, Stream.ACCEPT))

    found = {result: Fraction(weight) for weight, result in outcomes(run)}
    assert found == {
        (0, None): Fraction(1, 2),
        (2, True): Fraction(3, 16),
        (2, False): Fraction(1, 16),
        (3, True): Fraction(3, 16),
        (3, False): Fraction(1, 16),
    }


def test_lines_are_drawn_independently() -> None:
    rows, p = torch.arange(2), torch.tensor([[0.5, 0.5], [0.25, 0.75]])

    def run(chance: Chance) -> tuple[int, ...]:
        return tuple(chance.sample(p, rows, ROW.expand(2), 0).tolist())

    found = {result: weight for weight, result in outcomes(run)}
    assert found == {(0, 0): 0.125, (0, 1): 0.375, (1, 0): 0.125, (1, 1): 0.375}


def test_certain_and_impossible_draws_do_not_branch() -> None:
    def run(chance: Chance) -> list[bool]:
        return chance.accept(
            torch.tensor([1.5, -1.0]), torch.arange(2), ROW.expand(2), Stream.ACCEPT
        ).tolist()

    assert list(outcomes(run)) == [(1.0, [True, False])]


def test_code_without_draws_has_one_outcome() -> None:
    assert list(outcomes(lambda chance: "done")) == [(1.0, "done")]


def test_using_a_key_twice_is_found() -> None:
    def run(chance: Chance) -> None:
        for _ in range(2):
            chance.accept(torch.tensor([0.5]), ROW, ROW, Stream.ACCEPT)

    with pytest.raises(AssertionError, match="two draws"):
        list(outcomes(run))
