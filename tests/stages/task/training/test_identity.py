import copy

import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.task.training.identity import claim, file_digest, model_digest


def test_a_model_is_known_by_its_weights(checkpoint):
    known = model_digest(checkpoint.model)
    same = copy.deepcopy(checkpoint.model)
    assert model_digest(same) == known
    assert model_digest(same.bfloat16()) == known, "the same checkpoint in another dtype"
    with torch.no_grad():
        same.lm_head.weight.neg_()
    assert model_digest(same) != known


def test_a_file_is_known_by_its_content(tmp_path):
    path = tmp_path / "prompts.jsonl"
    missing = file_digest(path)
    path.write_text("a")
    first = file_digest(path)
    path.write_text("b")
    assert len({missing, first, file_digest(path)}) == 3


def test_a_checkpoint_belongs_to_its_material(tmp_path):
    claim(tmp_path, "one", resume=True)
    claim(tmp_path, "two", resume=True)  # nothing was trained yet
    (tmp_path / "checkpoint.old").mkdir()
    claim(tmp_path, "two", resume=True)
    with pytest.raises(UserError, match=r"task\.folder=.* task\.resume=false"):
        claim(tmp_path, "one", resume=True)
    claim(tmp_path, "one", resume=False)
    claim(tmp_path, "one", resume=True)
