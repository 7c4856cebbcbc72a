import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftmesh.stages.draft.tree.frontier import RunNodes


def slow_walk(tokens, parents, valid, accepted):
    """The length of the longest prefix of `accepted` that a path of valid nodes spells."""
    best = 0
    for node in range(len(tokens)):
        spelled, fine, at = [], True, node
        while at >= 0:
            spelled.append(tokens[at])
            fine = fine and valid[at]
            at = parents[at]
        if fine and spelled[::-1] == accepted[: len(spelled)]:
            best = max(best, len(spelled))
    return best


@st.composite
def trees(draw):
    size = draw(st.integers(0, 8))
    tokens = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    parents = [draw(st.integers(-1, n - 1)) for n in range(size)]
    valid: list[bool] = []
    for parent in parents:
        valid.append(draw(st.booleans()) and (parent < 0 or valid[parent]))
    return tokens, parents, valid, draw(st.lists(st.integers(0, 1), max_size=4))


@settings(deadline=None, max_examples=150)
@given(trees())
def test_the_accepted_path_is_found(tree):
    tokens, parents, valid, accepted = tree
    nodes = RunNodes(
        torch.tensor([tokens]).long(),
        torch.tensor([parents]).long(),
        torch.tensor([valid]).bool(),
    )
    step = torch.tensor([[9, *accepted, 1, 1]])
    path, counts = nodes.follow(step, torch.tensor([len(accepted) + 1]))
    count = int(counts[0])
    assert count == slow_walk(tokens, parents, valid, accepted)
    found = path[0, :count].tolist()
    assert [tokens[node] for node in found] == accepted[:count]
    assert [parents[node] for node in found] == [-1, *found][:count]


def test_dropped_rows_are_forgotten():
    nodes = RunNodes(
        torch.tensor([[1], [2], [3]]),
        torch.full((3, 1), -1),
        torch.ones(3, 1, dtype=torch.bool),
    ).select(torch.tensor([2, 0]))
    path, counts = nodes.follow(torch.tensor([[0, 3], [0, 2]]), torch.tensor([2, 2]))
    assert (path.tolist(), counts.tolist()) == ([[0], [-1]], [1, 0])
