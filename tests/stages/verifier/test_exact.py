"""The verifiers' real code under every outcome of drafting and verifying, in float64."""

import pytest

from draftmesh.registry.contracts.verifier import Verifier
from draftmesh.stages.sampling.enumerated import outcomes
from draftmesh.stages.verifier.block import Block
from draftmesh.stages.verifier.exactness import (
    emitted_distribution,
    plain_distribution,
    total_variation,
    verify_once,
)
from draftmesh.stages.verifier.match import Match
from draftmesh.stages.verifier.ratio import Ratio

RATIO, MATCH, BLOCK = Ratio(Ratio.Config()), Match(Match.Config()), Block(Block.Config())
LENGTH = 3


def check(verifier: Verifier, case) -> None:  # type: ignore[no-untyped-def]
    emitted = emitted_distribution(verifier, case.propose, case.target, LENGTH)
    assert float(emitted.sum()) == pytest.approx(1, abs=1e-12)
    assert total_variation(emitted, plain_distribution(case.target, LENGTH)) < 1e-12


def test_ratio_is_exact(case) -> None:  # type: ignore[no-untyped-def]
    check(RATIO, case)


def test_match_is_exact(case) -> None:  # type: ignore[no-untyped-def]
    check(MATCH, case)


def test_block_is_exact(chain_case) -> None:  # type: ignore[no-untyped-def]
    check(BLOCK, chain_case)


def kept(verifier: Verifier, case) -> float:  # type: ignore[no-untyped-def]
    """Expected number of accepted tokens."""
    return sum(
        weight * int(outcome.accepted[0])
        for weight, (_, outcome) in outcomes(
            lambda chance: verify_once(verifier, case.propose(chance), case.target, chance)
        )
    )


def test_block_keeps_at_least_as_many_tokens_as_ratio(chain_case) -> None:  # type: ignore[no-untyped-def]
    ratio, block = kept(RATIO, chain_case), kept(BLOCK, chain_case)
    assert block >= ratio - 1e-12
    if chain_case.name == "long chain":
        assert block > ratio + 0.01
