import json
import os
from pathlib import Path

import pytest
from torch.distributed import DistNetworkError, DistStoreError

from draftmesh.pipeline import rank
from draftmesh.pipeline.rank import Job, run_rank
from draftmesh.registry import UserError
from draftmesh.stages.parallel.plan import Plan


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DistStoreError("wait timeout after 60000ms, keys: /default_pg/0"), "aftermath"),
        (DistNetworkError("no route"), "aftermath"),
        (RuntimeError("[gloo/transport/tcp/pair.cc:547] closed"), "aftermath"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), "error"),
        (KeyError("Connection"), "error"),
        (UserError("draft.k=0: must be at least 1"), "user"),
    ],
)
def test_a_rank_leaves_word_of_what_its_error_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: str
) -> None:
    def fail(job: Job) -> None:
        raise error

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(rank, "_die_with", lambda parent: None)
    monkeypatch.setattr(rank, "AFTERMATH_S", 0)
    monkeypatch.setattr(rank, "perform", fail)
    with pytest.raises(SystemExit):
        run_rank(Job("module:function", None, Plan(ep=2), "cpu", 1, (), str(tmp_path), os.getpid()))
    assert json.loads((tmp_path / "1.json").read_text())["kind"] == kind
