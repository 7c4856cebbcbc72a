import pytest
import torch

from draftmesh.stages.model import memory
from draftmesh.stages.model.memory import all_memory, free_memory

CPU = torch.device("cpu")


@pytest.fixture
def container(monkeypatch, tmp_path):
    """Writes the files of a container with that limit, of which 600 kB are in use."""

    def limited(limit):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text("600000\n")
        (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 100000\n")

    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    return limited


def test_a_container_limits_the_memory(container):
    container(1_000_000)
    assert all_memory() == 1_000_000
    assert free_memory(CPU) == 500_000


def test_without_a_limit_it_is_the_machines(container):
    for write in (lambda: None, lambda: container("max")):
        write()
        assert 2**28 < all_memory() < 2**60
        assert 2**20 < free_memory(CPU) <= all_memory()
