import torch
from harness import requests, run_engine, tiny, with_eos

from draftmesh.registry.contracts.draft import Rows
from draftmesh.stages.draft.none import NoDraft


def test_it_proposes_nothing():
    class Context:
        target = tiny("llama").target

    draft = NoDraft(NoDraft.Config(), Context())
    draft.start(Rows(tuple(requests()[:3]), None, 50, None))
    draft.drop(torch.tensor([0, 2]))
    proposal = draft.propose(torch.tensor([3, 3]))
    assert proposal.tokens.shape == (2, 0)
    assert (draft.depth, draft.nodes, draft.target_forwards) == (0, 0, 0)
    draft.idle()


def test_every_step_emits_one_token():
    result = run_engine(with_eos(tiny("llama")), requests(max_new_tokens=6), batch_size=5)
    counters = result.counters
    assert all(c.accept_lengths == [1] * 6 for c in result.completions)
    assert (counters.steps, counters.rounds, counters.emitted) == (25, 5, 25)
    assert counters.drafted == counters.accepted == counters.first_rejections == 0
    assert counters.histogram == {0: 25}
