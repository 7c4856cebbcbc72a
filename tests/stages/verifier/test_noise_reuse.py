"""Several steps in a row: no step may meet noise that has shaped an earlier one."""

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Verifier
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.verifier.block import Block
from draftmesh.stages.verifier.match import Match
from draftmesh.stages.verifier.ratio import Ratio

RATIO, MATCH, BLOCK = Ratio(Ratio.Config()), Match(Match.Config()), Block(Block.Config())
ROWS, DEPTH, LENGTH = 60_000, 3, 4
P = torch.tensor([[0.5, 0.5], [0.3, 0.7]], dtype=torch.float64)
Q = torch.tensor([[0.9, 0.1], [0.8, 0.2]], dtype=torch.float64)
ROOT = torch.zeros(ROWS, dtype=torch.long)


def p_value(verifier: Verifier, by_first_position: bool) -> float:
    """Goodness of fit of the first tokens of many sequences, decoded step by step."""
    chance, rows = NoiseChance(torch.arange(ROWS), ROOT), torch.arange(ROWS)
    position, last = ROOT.clone(), ROOT
    written = torch.zeros(ROWS, LENGTH + DEPTH + 1, dtype=torch.long)
    while int(position.min()) < LENGTH:
        proposal = _draft(chance, rows, position, last, by_first_position)
        before = torch.cat([last[:, None], proposal.tokens], 1)
        outcome = verifier.verify(proposal, Distribution(P[before]), chance, position)
        for depth in range(DEPTH + 1):
            token = outcome.bonus if depth == DEPTH else proposal.tokens[:, depth]
            token = torch.where(outcome.accepted == depth, outcome.bonus, token)
            fits = (depth <= outcome.accepted) & (position + depth < LENGTH)
            written[rows[fits], position[fits] + depth] = token[fits]
        position, last = position + outcome.accepted + 1, outcome.bonus
    return _fit(written[:, :LENGTH])


def _draft(
    chance: NoiseChance, rows: Tensor, position: Tensor, last: Tensor, by_first_position: bool
) -> Proposal:
    tokens, q = [last], []
    for step in range(DEPTH):
        q.append(Q[tokens[-1]])
        key = (
            (position, Stream.DRAFT + step)
            if by_first_position
            else (position + step, Stream.DRAFT)
        )
        tokens.append(chance.sample(q[-1], rows, *key))
    valid = torch.ones(ROWS, DEPTH, dtype=torch.bool)
    return Proposal.chain(torch.stack(tokens[1:], 1), valid, torch.stack(q, 1))


def _fit(written: Tensor) -> float:
    counts = (written * 2 ** torch.arange(LENGTH)).sum(1).bincount(minlength=2**LENGTH)
    expected = torch.ones(2**LENGTH, dtype=torch.float64)
    last = torch.zeros(2**LENGTH, dtype=torch.long)
    for place in range(LENGTH):
        token = torch.arange(2**LENGTH) // 2**place % 2
        expected *= P[last, token]
        last = token
    return float(chisquare(counts.numpy(), (expected * ROWS).numpy()).pvalue)


@pytest.mark.parametrize("verifier", [RATIO, MATCH, BLOCK], ids=["ratio", "match", "block"])
def test_many_steps_are_exact(verifier: Verifier) -> None:
    assert p_value(verifier, by_first_position=True) > 1e-3


def test_block_is_biased_by_draft_noise_that_is_met_again() -> None:
    assert p_value(BLOCK, by_first_position=False) < 1e-9
