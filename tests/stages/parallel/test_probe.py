import pytest
import torch
from ranked_models import tiny

from draftmesh.registry import UserError
from draftmesh.stages.parallel.probe import Probe


def failing(error: Exception) -> Probe:
    model = tiny("llama")
    probe = Probe(model)

    def fail(*event: object) -> None:
        raise error

    model.model.layers[1].register_forward_hook(fail)
    return probe


def test_a_forward_that_fails_is_a_layout_that_we_split_wrongly() -> None:
    probe = failing(RuntimeError("The size of tensor a (16)\nmust match"))
    with pytest.raises(
        UserError, match=r"^tp2: LlamaForCausalLM fails .* a \(16\)\): use"
    ) as error:
        probe.check("tp2")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer"),
        torch.distributed.DistBackendError("lost"),
        torch.OutOfMemoryError("CUDA out of memory"),
    ],
)
def test_a_lost_rank_and_a_full_memory_are_not(error: Exception) -> None:
    with pytest.raises(type(error)):
        failing(error).check("tp2")
