import pytest
import torch

from draftmesh.registry import build
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.stages.draft.merge import merge_proposals
from draftmesh.stages.sampling.noise import NoiseChance

VOCAB = 4


def proposal(tokens, parents, valid=None, q=None, index=None, **options):
    size = len(tokens[0])
    return Proposal(
        torch.tensor(tokens),
        torch.tensor(parents),
        torch.ones(len(tokens), size).bool() if valid is None else torch.tensor(valid).bool(),
        q,
        None if index is None else torch.tensor(index),
        **options,
    )


def q_of(*lines):
    """[B, M, V]: each line a seed of M random distributions."""
    made = []
    for seed, count in lines:
        generator = torch.Generator().manual_seed(seed)
        made.append(torch.rand(count, VOCAB, generator=generator).double().softmax(-1))
    return torch.stack(made)


def row_of(merged, row):
    """A row as a proposal of its own."""
    at = slice(row, row + 1)
    return Proposal(
        merged.tokens[at],
        merged.parents[at],
        merged.valid[at],
        None if merged.q is None else merged.q[at],
        None if merged.q_index is None else merged.q_index[at],
        replacement=merged.replacement,
        fixed_shape=merged.fixed_shape,
    )


def verified(made, row_key):
    """What the ratio test does with a one-row proposal."""
    generator = torch.Generator().manual_seed(3)
    probs = torch.rand(1, 9, VOCAB, generator=generator).double().softmax(-1)
    found = []
    for seed in range(60):
        chance = NoiseChance(torch.tensor([seed]), torch.tensor([row_key]))
        outcome = build("verifier", {"name": "ratio"}).verify(
            made,
            Distribution(probs[:, : made.size + 1].clone()),
            chance,
            torch.zeros(1, dtype=torch.long),
        )
        count = int(outcome.accepted)
        found.append((outcome.path[0, :count].tolist(), int(outcome.bonus)))
    return found


HOT = proposal([[1, 2, 0], [3, 0, 0]], [[-1, 0, 1]] * 2, [[1, 1, 0], [1, 0, 0]])
DISTINCT = proposal(
    [[0, 2], [1, 3]],
    [[-1, -1]] * 2,
    q=q_of((1, 1), (2, 1)),
    index=[[0, 0]] * 2,
    replacement=False,
)
INDEPENDENT = proposal(
    [[0, 0, 1], [1, 3, 2]],
    [[-1, -1, 0]] * 2,
    q=q_of((5, 2), (6, 2)),
    index=[[0, 0, 1]] * 2,
)
EMPTY = Proposal.empty(2, torch.device("cpu"))


KINDS = {"one-hot": HOT, "distinct": DISTINCT, "independent": INDEPENDENT, "empty": EMPTY}


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_each_row_is_verified_as_in_its_own_proposal(first, second):
    one, two = KINDS[first], KINDS[second]
    merged = merge_proposals(one, two, torch.tensor([False, True]))
    assert merged.size == max(one.size if one.valid[0].any() else 0, two.size)
    for row, source in enumerate((one, two)):
        mine = row_of(merged, row)
        assert verified(mine, row) == verified(row_of(source, row), row)


def test_hidden_states_stay_when_only_their_draft_proposed():
    hidden = torch.zeros(2, 3, 5)
    second = proposal([[1, 2]] * 2, [[-1, 0]] * 2, hidden=hidden, resume_layer=1)
    alone = merge_proposals(EMPTY, second, torch.tensor([True, False]))
    assert alone.hidden is hidden
    assert alone.valid.tolist() == [[True, True], [False, False]]
    mixed = merge_proposals(HOT, second, torch.tensor([False, True]))
    assert mixed.hidden is None
    assert mixed.resume_layer == 0


def test_a_dynamic_tree_in_a_row_makes_the_whole_dynamic():
    dynamic = proposal([[1], [2]], [[-1]] * 2, fixed_shape=False)
    assert not merge_proposals(HOT, dynamic, torch.tensor([False, True])).fixed_shape


@pytest.mark.parametrize("sizes", [(1, 4), (4, 1), (0, 3)])
def test_chains_of_any_lengths_stay_chains(sizes):
    """Padding must not turn them into trees, which the block test refuses."""
    one, two = (
        Proposal.chain(torch.ones(2, size).long(), torch.ones(2, size).bool()) for size in sizes
    )
    merged = merge_proposals(one, two, torch.tensor([False, True]))
    assert merged.is_chain
    assert merged.valid.sum(1).tolist() == list(sizes)
