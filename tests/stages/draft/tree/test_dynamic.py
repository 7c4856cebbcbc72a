import pytest
import torch
from grown import context, grow, paths_of, random_draft

from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.sampling.noise import NoiseChance

CHANCE = NoiseChance(torch.zeros(3).long(), torch.arange(3))


def slow_tree(draft, beams, depth, nodes):
    """EAGLE-2's rule with plain lists of (score, path)."""
    level, found = [(0.0, ())], []
    for _ in range(depth):
        grown = []
        for score, path in level:
            logs = draft(path).log()
            best = logs.topk(beams)
            grown += [
                (score + float(log), (*path, int(token)))
                for log, token in zip(best.values, best.indices, strict=True)
                if log > -torch.inf
            ]
        found += grown
        level = sorted(grown, reverse=True)[:beams]
    return {path for _, path in sorted(found, reverse=True)[:nodes]}


@pytest.mark.parametrize(
    ("beams", "depth", "nodes"), [(2, 3, 6), (3, 4, 10), (4, 2, 99), (1, 4, 9)]
)
@pytest.mark.parametrize("zeros", [0.0, 0.6])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_best_candidates_stay(beams, depth, nodes, zeros, temperature):
    draft = random_draft(6, 3, zeros)
    options = TreeOptions(shape="dynamic", k=depth, nodes=nodes, top_k=beams)
    proposal = grow(draft, CHANCE, options, context(6, temperature=temperature))
    found = [path for path in paths_of(proposal) if path is not None]
    assert not proposal.fixed_shape
    assert proposal.q is None
    assert len(found) == len(set(found))
    assert set(found) == slow_tree(draft, beams, min(depth, nodes), nodes)


def test_rows_have_their_own_budgets():
    draft = random_draft(6, 3)
    options = TreeOptions(shape="dynamic", k=3, nodes=20, top_k=3)
    proposal = grow(draft, CHANCE, options, context(6), budgets=(3, 1, 0))
    paths = [[p for p in paths_of(proposal, row) if p] for row in range(3)]
    assert {len(p) for p in paths[0]} == {1, 2, 3}
    assert sorted(paths[1]) == sorted((int(t),) for t in draft(()).topk(3).indices)
    assert paths[2] == []
