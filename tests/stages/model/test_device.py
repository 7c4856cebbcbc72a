import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.model.device import resolve_device


@pytest.fixture
def gpus(monkeypatch):
    """gpus(count): so many GPUs, whose current one is gpus.current[-1]."""

    def have(count):
        monkeypatch.setattr(torch.cuda, "set_device", have.current.append)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    have.current = []
    return have


def test_auto_takes_the_cpu_without_a_gpu(gpus):
    gpus(0)
    assert resolve_device("auto") == torch.device("cpu")


def test_each_rank_takes_its_own_gpu(gpus, monkeypatch):
    gpus(4)
    assert resolve_device("auto") == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert resolve_device("auto") == torch.device("cuda", 3)
    assert resolve_device("cuda:1") == torch.device("cuda", 1)
    assert gpus.current == [0, 3, 1], "what times and memory counts refer to"
    monkeypatch.setenv("LOCAL_RANK", "4")
    with pytest.raises(UserError, match=r"cuda:4 of 4 GPUs here; use model\.device=cpu"):
        resolve_device("cuda")


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:0"])
def test_what_is_not_there_is_refused(gpus, name):
    gpus(0)
    with pytest.raises(UserError, match=f"model.device={name}"):
        resolve_device(name)
