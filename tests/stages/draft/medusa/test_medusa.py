"""What the draft proposes."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from medusa_files import TOKEN_MAP, blocks, v1, v2, write
from medusa_target import LAYERS, VOCAB, context_of, make_target

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.draft import Rows, Step
from draftmesh.stages.draft.medusa.heads import MedusaHeads
from draftmesh.stages.draft.medusa.layouts import save_medusa
from draftmesh.stages.draft.medusa.medusa import MedusaDraft
from draftmesh.stages.model.bytetokenizer import byte_tokenizer
from draftmesh.stages.sampling.noise import NoiseChance

PROMPTS = [[5, 17, 40, 8, 63], [7, 2], [90, 1, 33]]


@pytest.fixture
def folder(tmp_path):
    v2(tmp_path)
    return tmp_path


def opened(context, folder, prompts=PROMPTS, k=3, shape="chain", **options):
    draft = MedusaDraft(MedusaDraft.Config(path=str(folder), k=k, shape=shape, **options), context)
    requests = tuple(SimpleNamespace(token_ids=p, index=i) for i, p in enumerate(prompts))
    rows = len(prompts)
    chance = NoiseChance(torch.zeros(rows).long(), torch.arange(rows))
    draft.start(Rows(requests, chance, 100, None))
    draft.observe(step_of(context.target, draft, prompts))
    return draft


def step_of(target, draft, prompts):
    width = max(map(len, prompts))
    tokens = torch.tensor([p + [0] * (width - len(p)) for p in prompts])
    lengths = torch.tensor([len(p) for p in prompts])
    steps = torch.arange(width)
    forward = target.forward(
        tokens,
        target.new_cache(len(prompts), width),
        valid=steps < lengths[:, None],
        capture=draft.capture,
        logits_at=lengths[:, None] - 1,
    )
    return Step(
        tokens,
        lengths,
        steps.expand_as(tokens),
        forward.features,
        forward.logits[:, 0].argmax(-1),
    )


def best(context, folder, prompt):
    """log-probabilities [3, V] of the heads after a prompt alone, plainly."""
    draft = opened(context, folder, [prompt])
    return draft.runner.logits(3)[0].log_softmax(-1)


def paths(proposal, row):
    found = []
    for node in range(proposal.size):
        parent = int(proposal.parents[row, node])
        above = found[parent] if parent >= 0 else ()
        found.append((*above, int(proposal.tokens[row, node])))
    return [path for path, ok in zip(found, proposal.valid[row].tolist(), strict=True) if ok]


def test_a_chain_takes_each_heads_best_token(context, folder):
    proposal = opened(context, folder).propose(torch.tensor([3, 3, 3]))
    assert proposal.is_chain
    for row, prompt in enumerate(PROMPTS):
        wanted = best(context, folder, prompt).argmax(-1)
        assert torch.equal(proposal.tokens[row], wanted)


def test_a_static_tree_takes_each_heads_ranks(context, folder):
    draft = opened(context, folder, shape="static", widths=[3, 2, 1])
    proposal = draft.propose(torch.tensor([3, 3, 3]))
    assert proposal.size == 3 + 6 + 6
    for row, prompt in enumerate(PROMPTS):
        ranked = best(context, folder, prompt).topk(3, -1).indices.tolist()
        wanted = [(a,) for a in ranked[0]]
        wanted += [(a, b) for a in ranked[0] for b in ranked[1][:2]]
        wanted += [(a, b, ranked[2][0]) for a in ranked[0] for b in ranked[1][:2]]
        assert paths(proposal, row) == wanted


def test_a_dynamic_tree_takes_the_likeliest_products(context, folder):
    draft = opened(context, folder, shape="dynamic", nodes=9, top_k=6)
    proposal = draft.propose(torch.tensor([3, 3, 3]))
    for row, prompt in enumerate(PROMPTS):
        logs, ids = best(context, folder, prompt).topk(6, -1)
        scores = {(): 0.0}
        for depth in range(3):
            scores |= {
                (*above, int(token)): score + float(log)
                for above, score in list(scores.items())
                if len(above) == depth
                for log, token in zip(logs[depth], ids[depth], strict=True)
            }
        del scores[()]
        wanted = sorted(scores, key=scores.__getitem__, reverse=True)[:9]
        assert sorted(paths(proposal, row)) == sorted(wanted)


SHAPES = [
    {"shape": "chain"},
    {"shape": "static", "widths": [3, 2, 1]},
    {"shape": "static", "widths": [3, 2, 1], "children": "independent"},
    {"shape": "dynamic"},
]


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("options", SHAPES)
def test_rows_of_a_batch_are_independent(context, sampling_context, folder, options, sampled):
    used = replace(sampling_context, coupled=False) if sampled else context
    draft = opened(used, folder, **options)
    whole = draft.propose(torch.tensor([3, 1, 2]))
    assert [max(map(len, paths(whole, row))) for row in range(3)] == [3, 1, 2]
    assert draft.propose(torch.tensor([0, 0, 0])).size == 0
    draft.drop(torch.tensor([2, 0]))
    kept = draft.propose(torch.tensor([2, 3]))
    if not sampled:  # what is drawn depends on the row's number
        assert paths(kept, 0) == paths(whole, 2)
        assert paths(kept, 1) == paths(whole, 0)
        alone = opened(used, folder, [PROMPTS[2]], **options).propose(torch.tensor([2]))
        assert set(paths(alone, 0)) <= set(paths(whole, 2))


def test_the_state_is_that_of_the_last_accepted_token(context, folder):
    draft = opened(context, folder, [PROMPTS[0]])
    features = torch.randn(1, 4, 32, dtype=torch.float64)
    nothing = torch.zeros(1, 4, dtype=torch.long)
    draft.observe(Step(nothing, torch.tensor([2]), nothing, {LAYERS: features}, nothing[:, 0]))
    assert torch.equal(draft.runner.hidden, features[:, 1])
    assert draft.runner.lengths.tolist() == [7]


def test_drawn_tokens_come_from_the_q_handed_on(sampling_context, folder):
    proposal = opened(sampling_context, folder).propose(torch.tensor([3, 3, 3]))
    assert proposal.q.shape == (3, 3, VOCAB)
    lengths = torch.tensor([len(p) for p in PROMPTS])
    chance = NoiseChance(torch.zeros(3).long(), torch.arange(3))
    for depth in range(3):
        again = chance.sample(
            proposal.q[:, depth], torch.arange(3), lengths + 1, Stream.DRAFT + depth
        )
        assert torch.equal(again, proposal.tokens[:, depth])


def test_the_reduced_vocabulary_is_the_whole_support(sampling_context, tmp_path):
    state = blocks("{h}.{j}.linear", 3, 1) | {"token_map": TOKEN_MAP}
    write(tmp_path, {}, state, "medusa_lm_head.safetensors")
    q = opened(sampling_context, tmp_path).propose(torch.tensor([3, 3, 3])).q
    inside = torch.zeros(VOCAB).bool()
    inside[TOKEN_MAP] = True
    assert (q[..., inside] > 0).all()
    assert (q[..., ~inside] == 0).all()


def test_a_shorter_proposal_runs_fewer_heads(context, folder, monkeypatch):
    draft = opened(context, folder, shape="dynamic")
    ran = []
    run = draft.runner.logits
    monkeypatch.setattr(draft.runner, "logits", lambda depth: ran.append(depth) or run(depth))
    draft.propose(torch.tensor([3, 3, 3]))
    draft.propose(torch.tensor([1, 2, 0]))
    draft.resize(1)
    assert max(map(len, paths(draft.propose(torch.tensor([3, 3, 3])), 0))) == 1
    assert ran == [3, 2, 1]


def test_heads_that_know_their_model_are_told_from_others(tmp_path, caplog):
    target = make_target()
    # A model that says the same whatever it reads, as heads with its LM head do, too.
    always = torch.zeros(VOCAB, dtype=torch.float64)
    always[7] = 1e3
    target.model.lm_head.bias = torch.nn.Parameter(always, requires_grad=False)
    context = context_of(target)
    checkpoint = replace(context.checkpoint, tokenizer=byte_tokenizer(VOCAB))
    context = replace(context, checkpoint=checkpoint)
    known = MedusaHeads.fresh(3, 1, 32, VOCAB, None)
    save_medusa(known, tmp_path / "good", torch.float64, "tiny", {})
    v1(tmp_path / "bad")
    draft = MedusaDraft(MedusaDraft.Config(path=str(tmp_path / "good"), k=3), context)
    assert draft.facts()["draft_agreement"] == 1
    assert not caplog.records
    draft = MedusaDraft(MedusaDraft.Config(path=str(tmp_path / "bad"), k=3), context)
    assert draft.facts()["draft_agreement"] < 0.15
    assert "draft.path=" in caplog.text
