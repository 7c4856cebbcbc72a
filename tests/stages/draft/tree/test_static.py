from dataclasses import replace

import pytest
import torch
from grown import context, grow, paths_of, random_draft

from draftmesh.registry.contracts.sampling import History
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.sampling.noise import NoiseChance

CHANCE = NoiseChance(torch.zeros(3).long(), torch.arange(3))
OPTIONS = TreeOptions(shape="static", widths=[3, 2, 1])


@pytest.mark.parametrize("whole", [False, True])
def test_children_are_the_likeliest_tokens(whole):
    draft = random_draft(6, 3)
    proposal = grow(draft, CHANCE, OPTIONS, context(6), whole=whole)
    paths = paths_of(proposal)
    expected = [(int(a),) for a in draft(()).topk(3).indices]
    for width in (2, 1):
        above = expected[-3:] if width == 2 else expected[-6:]
        expected += [(*path, int(t)) for path in above for t in draft(path).topk(width).indices]
    assert paths == expected


def test_ranks_of_paths_choose_among_siblings():
    draft = random_draft(6, 3)
    options = TreeOptions(shape="static", paths=[[0], [3], [3, 1]])
    best, _, _, fourth = draft(()).topk(4).indices.tolist()
    second = int(draft((fourth,)).topk(2).indices[1])
    proposal = grow(draft, CHANCE, options, context(6))
    assert paths_of(proposal) == [(best,), (fourth,), (fourth, second)]


@pytest.mark.parametrize("children", ["top", "distinct", "independent"])
def test_rows_grow_as_they_would_alone(children):
    draft = random_draft(6, 4)
    options = replace(OPTIONS, children=children)
    here = context(6, temperature=1.0)
    together = grow(draft, CHANCE, options, here, budgets=(3, 2, 0))
    for row, budget in enumerate((3, 2)):
        chance = NoiseChance(torch.zeros(1).long(), torch.tensor([row]))
        alone = grow(draft, chance, options, here, budgets=(budget,))
        mine = [path for path in paths_of(together, row) if path]
        assert mine == [path for path in paths_of(alone) if path]
        assert max(map(len, mine)) == budget
    assert not together.valid[2].any()


def test_each_node_is_processed_with_its_own_path():
    """A repetition penalty so strong that no path repeats a token, prompt included."""
    here = context(6, temperature=1.0, repetition_penalty=1e6, top_k=1)
    flat = torch.tensor([0.3, 0.25, 0.2, 0.15, 0.06, 0.04], dtype=torch.float64)
    options = TreeOptions(shape="static", widths=[1, 1, 1], children="distinct")
    proposal = grow(lambda path: flat * 2.7, CHANCE, options, here, prompt=(0, 2))
    assert paths_of(proposal) == [(1,), (1, 3), (1, 3, 4)]
    assert proposal.q_index.tolist() == [[0, 1, 2]]
    for index, node in enumerate((1, 3, 4)):
        assert proposal.q[0, index].nonzero().flatten().tolist() == [node]


def test_processors_look_back_on_a_branch_and_not_on_its_sibling():
    seen = []

    class Spy:
        greedy, uses_history = True, True

        def __init__(self, inner):
            self.inner = inner

        def log_probs(self, logits, history: History | None = None):
            assert history is not None
            nodes = range(history.node_tokens.shape[1] + 1)
            seen.append([history.path(0, n).tolist() for n in nodes][-logits.shape[1] :])
            return self.inner.log_probs(logits, None)

    draft = random_draft(6, 3)
    here = context(6)
    here = replace(here, sampler=Spy(here.sampler))
    for options in (OPTIONS, TreeOptions(shape="dynamic", k=3, nodes=9, top_k=2)):
        for whole in (False, True) if options is OPTIONS else (False,):
            seen.clear()
            proposal = grow(draft, CHANCE, options, here, prompt=(4, 5), whole=whole)
            known = [list(p) for p in paths_of(proposal) if p]
            assert seen[0] == [[4, 5]]
            assert len(seen) == 3
            for depth, paths in enumerate(seen):
                assert {len(p) for p in paths} == {2 + depth}
                if options is OPTIONS:
                    assert all(path[2:] in known for path in paths if depth)
