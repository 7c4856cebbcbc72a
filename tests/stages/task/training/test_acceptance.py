import pytest
import torch

from draftmesh.stages.task.training.acceptance import Acceptance


def test_only_unbroken_chains_count():
    acceptance = Acceptance(3)
    hits = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 0]]).bool()
    valid = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]).bool()
    acceptance.add("chat", hits, valid)
    assert acceptance.rates() == [3 / 4, 1 / 3, 1 / 2]
    assert acceptance.length() == pytest.approx(1 + 3 / 4 + 1 / 3 + 1 / 2)
    acceptance.add("code", torch.zeros(3, 2).bool(), torch.ones(3, 2).bool())
    assert acceptance.rates("chat") == [3 / 4, 1 / 3, 1 / 2]
    assert acceptance.rates()[0] == 3 / 6
