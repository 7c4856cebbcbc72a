"""Logits that are no numbers: the target's end the run in one line, a draft's cost its drafts."""

import pytest
import torch
from harness import PROMPTS, requests, run_engine, save_draft, tiny, tokens, with_eos

from draftmesh.registry import UserError
from draftmesh.stages.draft.small import SmallDraft

SAMPLINGS = ({}, {"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.9})
DAMAGED = (7, 8, 50, 9)


@pytest.fixture(scope="module")
def overflowing():
    """A target that overflows on token 50."""
    setup = with_eos(tiny.__wrapped__("llama"))
    setup.checkpoint.model.get_input_embeddings().weight[50] = float("nan")
    return setup


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("prompts", [[DAMAGED], [PROMPTS[0], DAMAGED], [DAMAGED, PROMPTS[0]]])
@pytest.mark.parametrize("draft", [None, {"name": "ngram", "min_match": 1}])
def test_a_targets_numbers_are_told_whichever_row_they_are_in(
    overflowing, sampling, prompts, draft
):
    asked = requests(prompts, max_new_tokens=6)
    with pytest.raises(UserError, match=r"no token can be chosen.*model\.dtype=float32"):
        run_engine(overflowing, asked, draft, sampling=sampling, batch_size=2)


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """The small draft gives no numbers for the last row of every third forward."""
    fit, calls = SmallDraft._fit, []

    def broken(self, logits):
        calls.append(1)
        logits = fit(self, logits)
        if len(calls) % 3 == 0:
            logits = logits.clone()
            logits[-1] = float("nan")
        return logits

    monkeypatch.setattr(SmallDraft, "_fit", broken)
    return save_draft(tmp_path / "draft", noise=0.02)


@pytest.mark.parametrize(
    ("verifier", "shape"),
    [
        ("match", "chain"),
        ("match", "static"),
        ("match", "dynamic"),
        ("ratio", "chain"),
        ("ratio", "static"),
    ],
)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_drafts_cost_only_drafts(failing, verifier, shape, sampling, batch_size):
    setup, asked = with_eos(tiny("llama")), requests(PROMPTS[:3])
    node = {"name": "small", "path": failing, "k": 3, "shape": shape}
    found = run_engine(setup, asked, node, verifier, sampling, batch_size)
    assert found.counters.accepted > 0
    if verifier == "match" or not sampling:
        assert tokens(found) == tokens(run_engine(setup, asked, None, "match", sampling))
    assert all(len(line) == 12 and torch.tensor(line).ge(0).all() for line in tokens(found))
