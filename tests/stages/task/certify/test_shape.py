import torch

from draftmesh.registry.contracts.draft import Proposal
from draftmesh.stages.task.certify.shape import Shape


def test_shape_of_a_row_leaves_out_what_is_not_valid() -> None:
    proposal = Proposal(
        torch.zeros(2, 4, dtype=torch.long),
        torch.tensor([[-1, -1, 0, 1], [-1, 0, 1, 2]]),
        torch.tensor([[True, True, False, True], [True, True, False, False]]),
        torch.ones(2, 2, 5),
        torch.tensor([[0, -1, 1, 1], [0, 1, 1, 1]]),
        replacement=False,
    )
    assert Shape.of(proposal, 0) == Shape((-1, -1, 1), (True, False, True), False, True)
    assert Shape.of(proposal, 1) == Shape((-1, 0), (True, True), False, True)


def test_a_chain_stays_a_chain() -> None:
    small = Shape(tuple(range(-1, 6)), (True,) * 7).reduced(3)
    assert small.parents == (-1, 0, 1)
    assert str(small) == "a chain of 3 drawn tokens"


def test_a_tree_keeps_siblings_and_depth() -> None:
    first_child_first = Shape((-1, 0, 0, 0, 1, -1, 5, -1), (False,) * 8, True, False)
    small = first_child_first.reduced(4)
    assert small.parents == (-1, -1, 0, 0)
    assert small.branching
    assert not small.fixed_shape
    assert str(small) == "a tree of 4 given nodes"


def test_drawn_and_given_nodes_stay_what_they_are() -> None:
    small = Shape((-1, -1, 0), (True, False, True), False).reduced(3)
    assert small.drawn == (True, False, True)
    assert str(small) == "a tree of 3 drawn and given nodes without replacement"
    assert str(Shape()) == "no draft"
