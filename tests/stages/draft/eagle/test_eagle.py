from types import SimpleNamespace

import pytest
import torch

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.draft import Rows, Step
from draftmesh.stages.draft.eagle.eagle import EagleDraft
from draftmesh.stages.draft.eagle.safeai import save_head
from draftmesh.stages.sampling.noise import NoiseChance


def opened(context, folder, prompts, k=4, confidence=0.0, **options):
    config = EagleDraft.Config(path=str(folder), k=k, confidence=confidence, **options)
    draft = EagleDraft(config, context)
    requests = tuple(SimpleNamespace(token_ids=p, index=i) for i, p in enumerate(prompts))
    rows = len(prompts)
    chance = NoiseChance(torch.zeros(rows).long(), torch.arange(rows))
    draft.start(Rows(requests, chance, 100, None))
    draft.observe(prompt_step(context.target, draft, prompts))
    return draft


def prompt_step(target, draft, prompts):
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
    following = forward.logits[:, 0].argmax(-1)
    return Step(tokens, lengths, steps.expand_as(tokens), forward.features, following)


PROMPTS = [[5, 17, 40, 8, 63], [7, 2], [90, 1, 33]]


@pytest.fixture(params=[1, 3])
def folder(request, tmp_path, make_head):
    save_head(make_head(request.param), tmp_path, torch.float64)
    return tmp_path


def test_a_batch_drafts_what_each_row_drafts_alone(context, folder):
    draft = opened(context, folder, PROMPTS)
    proposal = draft.propose(torch.tensor([4, 4, 4]))
    assert proposal.tokens.shape == (3, 4)
    assert proposal.q is None
    for row, prompt in enumerate(PROMPTS):
        alone = opened(context, folder, [prompt]).propose(torch.tensor([4]))
        assert torch.equal(alone.tokens[0], proposal.tokens[row])


def test_the_budget_bounds_each_row(context, folder):
    draft = opened(context, folder, PROMPTS)
    proposal = draft.propose(torch.tensor([1, 3, 0]))
    assert proposal.valid.sum(1).tolist() == [1, 3, 0]
    assert draft.propose(torch.tensor([0, 0, 0])).size == 0


def test_dropped_rows_leave_the_others_alone(context, folder):
    draft = opened(context, folder, PROMPTS)
    whole = draft.propose(torch.tensor([4, 4, 4]))
    draft.drop(torch.tensor([2, 0]))
    kept = draft.propose(torch.tensor([4, 4]))
    assert torch.equal(kept.tokens, whole.tokens[[2, 0]])


def test_sampled_tokens_come_from_the_q_handed_on(sampling_context, folder):
    draft = opened(sampling_context, folder, PROMPTS)
    proposal = draft.propose(torch.tensor([3, 3, 3]))
    assert proposal.q.shape == (3, 3, 96)
    torch.testing.assert_close(proposal.q.sum(-1), torch.ones(3, 3, dtype=proposal.q.dtype))
    lengths = torch.tensor([len(p) for p in PROMPTS])
    chance = NoiseChance(torch.zeros(3).long(), torch.arange(3))
    for depth in range(3):
        again = chance.sample(
            proposal.q[:, depth], torch.arange(3), lengths + 1, Stream.DRAFT + depth
        )
        assert torch.equal(again, proposal.tokens[:, depth])


def test_a_reduced_vocabulary_is_the_whole_support(sampling_context, tmp_path, make_head):
    head = make_head(3)
    save_head(head, tmp_path, torch.float64)
    proposal = opened(sampling_context, tmp_path, PROMPTS).propose(torch.tensor([3, 3, 3]))
    assert (proposal.q[..., ~head.t2d] == 0).all()
    assert (proposal.q[..., head.t2d] > 0).all()


def test_no_draft_past_the_heads_positions(context, tmp_path, make_head):
    save_head(make_head(3, max_position=6), tmp_path, torch.float64)
    draft = opened(context, tmp_path, [[5, 17, 40, 8], [7, 2], [3] * 9])
    proposal = draft.propose(torch.tensor([4, 4, 4]))
    assert proposal.valid.sum(1).tolist() == [2, 4, 0]


@pytest.mark.parametrize(
    "options", [{"shape": "static", "widths": [3, 2, 1]}, {"shape": "dynamic"}]
)
def test_trees_start_like_the_chain(context, folder, options):
    chain = opened(context, folder, PROMPTS, k=3).propose(torch.tensor([3, 3, 2]))
    draft = opened(context, folder, PROMPTS, k=3, **options)
    proposal = draft.propose(torch.tensor([3, 3, 2]))
    for row, depth in enumerate([3, 3, 2]):
        paths = spelled(proposal, row)
        assert tuple(chain.tokens[row, :depth].tolist()) in paths
        assert max(map(len, paths)) == depth
    draft.drop(torch.tensor([1]))
    again = draft.propose(torch.tensor([3]))
    assert spelled(again, 0) == spelled(proposal, 1)


def spelled(proposal, row):
    """The tokens down to every valid node."""
    paths = []
    for node in range(proposal.size):
        parent = int(proposal.parents[row, node])
        above = paths[parent] if parent >= 0 else ()
        paths.append((*above, int(proposal.tokens[row, node])))
    return {path for path, ok in zip(paths, proposal.valid[row].tolist(), strict=True) if ok}
