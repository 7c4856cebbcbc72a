import pytest
import torch

from draftmesh.stages.task.training.acceptance import Acceptance, walk


def test_only_unbroken_chains_count():
    acceptance = Acceptance(3)
    hits = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 0]]).bool()
    valid = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]).bool()
    acceptance.add("chat", hits, valid)
    assert acceptance.rates() == [3 / 4, 1 / 3, 1 / 2]
    acceptance.add("code", torch.zeros(3, 2).bool(), torch.ones(3, 2).bool())
    assert acceptance.rates("chat") == [3 / 4, 1 / 3, 1 / 2]
    assert acceptance.rates()[0] == 3 / 6


def test_the_length_is_that_of_decoding_which_goes_past_what_was_accepted():
    acceptance = Acceptance(2)
    # Two right, then nothing, then a row of one right each: 3 + 1 + 2 tokens in 3 forwards.
    hits = torch.tensor([[1, 1, 1, 0, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]]).bool()
    valid = torch.tensor([[1] * 6 + [0] * 2, [1] * 5 + [0] * 3]).bool()
    acceptance.add("chat", hits, valid)
    assert acceptance.length("chat") == pytest.approx(6 / 3)
    acceptance.add("code", torch.zeros(2, 3).bool(), torch.ones(2, 3).bool())
    assert acceptance.length("code") == 1
    assert acceptance.length() == pytest.approx(9 / 6)


@pytest.mark.parametrize(("accepted", "forwards"), [([], 0), ([0, 0], 2), ([5], 1), ([1, 9, 0], 2)])
def test_every_forward_goes_past_its_accepted_tokens_and_the_bonus(accepted, forwards):
    assert walk(accepted) == forwards
