"""Probability that some child of the root is accepted, against closed formulas."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.verifier import Verifier
from draftmesh.stages.sampling.enumerated import outcomes
from draftmesh.stages.verifier.exactness import Conditional, Propose, draw_tree, verify_once
from draftmesh.stages.verifier.match import Match
from draftmesh.stages.verifier.ratio import Ratio

RATIO, MATCH = Ratio(Ratio.Config()), Match(Match.Config())


def accepted(verifier: Verifier, propose: Propose, target: Conditional) -> float:
    return sum(
        weight
        for weight, (_, outcome) in outcomes(
            lambda chance: verify_once(verifier, propose(chance), target, chance)
        )
        if int(outcome.accepted[0]) > 0
    )


def overlap(p: Tensor, q: Tensor) -> float:
    return float(torch.minimum(p, q).sum())


def rest(p: Tensor, q: Tensor) -> Tensor:
    left = (p - q).clamp(min=0)
    return left / left.sum()


@pytest.fixture(params=range(3))
def pair(
    request: pytest.FixtureRequest, model: Callable[..., Conditional]
) -> tuple[Conditional, ...]:
    return model(5, 10 + request.param), model(5, 20 + request.param)


def test_chain_accepts_with_one_minus_the_total_variation(pair: tuple[Conditional, ...]) -> None:
    p, q = pair
    found = accepted(RATIO, lambda c: draw_tree(q, (-1,), c), p)
    assert found == pytest.approx(1 - float((p(()) - q(())).abs().sum()) / 2, abs=1e-12)


def test_match_accepts_when_two_draws_agree(pair: tuple[Conditional, ...]) -> None:
    p, q = pair
    found = accepted(MATCH, lambda c: draw_tree(q, (-1,), c), p)
    assert found == pytest.approx(float((p(()) * q(())).sum()), abs=1e-12)


@pytest.mark.parametrize("verifier", [RATIO, MATCH], ids=["ratio", "match"])
def test_deterministic_candidates_accept_with_their_mass(
    pair: tuple[Conditional, ...], verifier: Verifier
) -> None:
    p, q = pair
    best = q(()).topk(3).indices
    chosen = Proposal(best[None], torch.full((1, 3), -1), torch.ones(1, 3, dtype=torch.bool))
    found = accepted(verifier, lambda _: chosen, p)
    assert found == pytest.approx(float(p(())[best].sum()), abs=1e-12)


def test_siblings_with_replacement(pair: tuple[Conditional, ...]) -> None:
    p, q = (model(()) for model in pair)
    missed, left = 1.0, p
    for _ in range(3):
        missed, left = missed * (1 - overlap(left, q)), rest(left, q)
    found = accepted(RATIO, lambda c: draw_tree(pair[1], (-1,) * 3, c), pair[0])
    assert found == pytest.approx(1 - missed, abs=1e-12)


def test_siblings_without_replacement(pair: tuple[Conditional, ...]) -> None:
    p, q = (model(()) for model in pair)
    missed = 0.0
    for token in range(5):
        others = q.clone()
        others[token] = 0
        rejected = q[token] * (1 - min(1.0, float(p[token] / q[token])))
        missed += float(rejected) * (1 - overlap(rest(p, q), others / others.sum()))
    found = accepted(RATIO, lambda c: draw_tree(pair[1], (-1, -1), c, replacement=False), pair[0])
    assert found == pytest.approx(1 - missed, abs=1e-12)
    again = accepted(RATIO, lambda c: draw_tree(pair[1], (-1, -1), c), pair[0])
    assert found > again
