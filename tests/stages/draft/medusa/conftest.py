import sys
from pathlib import Path

import pytest

from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.model.target import HFTarget

sys.path.insert(0, str(Path(__file__).parent))

from medusa_target import context_of, make_target


@pytest.fixture(scope="session")
def target() -> HFTarget:
    return make_target()


@pytest.fixture
def context(target: HFTarget) -> DraftContext:
    return context_of(target)


@pytest.fixture
def sampling_context(target: HFTarget) -> DraftContext:
    return context_of(target, temperature=1.0)
