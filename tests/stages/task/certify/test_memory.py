import pytest

from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.model.tiny import Tiny
from draftmesh.stages.task.certify.memory import layers_that_fit


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def target(request: pytest.FixtureRequest) -> HFTarget:
    return HFTarget(Tiny(Tiny.Config(arch=request.param, layers=6)).load().model)


def test_all_some_or_no_layers_fit(target: HFTarget) -> None:
    whole = 8 * sum(p.numel() for p in target.model.parameters())
    fits = [layers_that_fit(target, int(whole * share), 1) for share in (2, 0.9, 0.7, 0.0)]
    assert fits[0] == 6
    assert 0 < fits[2] < fits[1] < 6
    assert fits[3] == 0
    assert layers_that_fit(target, 2 * whole, 4) < 6, "a rank loads the whole before it is split"
