"""The self-check of heads on the default model."""

import json
import shutil

import pytest

from draftmesh.registry import build_config, get
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.eagle.eagle import EagleDraft
from draftmesh.stages.draft.selfcheck import LEAST
from draftmesh.stages.draft.shipped import shipped_head
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors

pytestmark = pytest.mark.real

SHIPPED = [
    {"name": "eagle"},
    {"name": "eagle", "path": "smollm2-eagle1"},
    {"name": "medusa"},
    {"name": "small"},
]


@pytest.fixture
def context(smollm2):
    sampler = Processors(SamplingOptions(), smollm2.target.vocab_size)
    return DraftContext(smollm2.target, smollm2.checkpoint, sampler, Solo())


@pytest.mark.parametrize("node", SHIPPED, ids=str)
def test_the_shipped_heads_agree(context, caplog, node):
    cls = get("draft", node["name"])
    draft = cls(build_config(cls, node), context)
    assert draft.facts()["draft_agreement"] > LEAST
    assert not caplog.records


def test_a_head_that_is_read_wrongly_is_told_with_the_cause(context, caplog, tmp_path):
    shutil.copytree(shipped_head("eagle", "smollm2", None), tmp_path, dirs_exist_ok=True)
    config = tmp_path / "config.json"
    keys = json.loads(config.read_text()) | {"norm_before_residual": True}
    config.write_text(json.dumps(keys))
    draft = EagleDraft(EagleDraft.Config(path=str(tmp_path)), context)
    assert draft.facts()["draft_agreement"] < LEAST
    assert "norm_before_residual should be false (that gives" in caplog.text
