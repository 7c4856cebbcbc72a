import pytest
import torch

from draftmesh.stages.task.training import loss as module
from draftmesh.stages.task.training.loss import SoftCrossEntropy


@pytest.mark.parametrize("piece", [3, 1000])
def test_value_and_gradients_are_the_plain_ones(monkeypatch, piece):
    monkeypatch.setattr(module, "PIECE", piece)
    torch.manual_seed(0)
    hidden = torch.randn(2, 7, 5, requires_grad=True)
    weight = torch.randn(11, 5, requires_grad=True)
    teacher, rows, scale = torch.randn(7, 5), torch.randn(11, 5), torch.rand(2, 7)
    scale[1, 0] = 0

    goal = (teacher @ rows.T).softmax(-1)
    log = (hidden @ weight.T).log_softmax(-1)
    want = -((goal * log).sum(-1) * scale).sum() * 2
    by_hidden, by_weight = torch.autograd.grad(want, (hidden, weight))

    got = SoftCrossEntropy.apply(hidden, weight, teacher, rows, scale) * 2
    got.backward()
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(hidden.grad, by_hidden)
    torch.testing.assert_close(weight.grad, by_weight)
