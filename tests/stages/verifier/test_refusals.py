from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.verifier.block import Block
from draftmesh.stages.verifier.match import Match
from draftmesh.stages.verifier.ratio import Ratio
from draftmesh.stages.verifier.typical import Typical

ZERO = torch.zeros(1, dtype=torch.long)
TREE = Proposal(
    torch.tensor([[1, 2]]), torch.tensor([[-1, -1]]), torch.ones(1, 2, dtype=torch.bool)
)
FLAT = Distribution(probs=torch.full((1, 3, 4), 0.25))
GREEDY = Distribution(tokens=torch.tensor([[2, 0, 3]]))


def run(cls: Callable[..., Any], proposal: Proposal, target: Distribution = FLAT) -> Outcome:
    verifier = cls(cls.Config())  # type: ignore[attr-defined]
    outcome: Outcome = verifier.verify(proposal, target, NoiseChance(ZERO, ZERO), ZERO)
    return outcome


@pytest.mark.parametrize("cls", [Ratio, Block])
@pytest.mark.parametrize("target", [FLAT, GREEDY], ids=["sampling", "greedy"])
def test_dynamic_shapes_are_refused(cls: Callable[..., Any], target: Distribution) -> None:
    with pytest.raises(UserError, match="verifier=match"):
        run(cls, replace(TREE, fixed_shape=False), target)


def test_match_takes_dynamic_shapes() -> None:
    outcome = run(Match, replace(TREE, fixed_shape=False), GREEDY)
    assert (outcome.path.tolist(), outcome.bonus.tolist()) == ([[1, -1]], [3])


def test_block_refuses_trees() -> None:
    with pytest.raises(UserError, match=r"draft\.shape=chain"):
        run(Block, TREE)


@pytest.mark.parametrize("cls", [Match, Ratio, Block, Typical])
@pytest.mark.parametrize("target", [FLAT, GREEDY], ids=["sampling", "greedy"])
def test_plain_decoding_is_an_empty_proposal(cls: Callable[..., Any], target: Distribution) -> None:
    outcome = run(cls, Proposal.empty(1, torch.device("cpu")), target.node(slice(0, 1)))
    assert outcome.path.shape == (1, 0)
    assert outcome.accepted.tolist() == [0]
    assert outcome.bonus.shape == (1,)
    if target.tokens is not None:
        assert outcome.bonus.tolist() == [2]


def test_which_are_lossless() -> None:
    assert (Match.lossless, Ratio.lossless, Block.lossless) == (True, True, True)
    assert not Typical.lossless


@pytest.mark.parametrize(("option", "value"), [("epsilon", 0.0), ("epsilon", 1.0), ("delta", 0.0)])
def test_typical_names_the_wrong_option(option: str, value: float) -> None:
    with pytest.raises(UserError, match=f"verifier\\.{option}"):
        Typical.Config(**{option: value})


def test_plain_decoding_draws_alike_under_all_lossless_verifiers() -> None:
    empty = Proposal.empty(1, torch.device("cpu"))
    drawn = {int(run(cls, empty, FLAT.node(slice(0, 1))).bonus) for cls in (Match, Ratio, Block)}
    assert len(drawn) == 1
