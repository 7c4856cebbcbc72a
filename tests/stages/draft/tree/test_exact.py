"""Trees drawn by the real picker, verified by the real ratio test, every outcome enumerated."""

import pytest
import torch
from grown import context, grow, paths_of, random_draft

from draftmesh.registry import build
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.sampling.enumerated import outcomes
from draftmesh.stages.verifier.exactness import (
    emitted_distribution,
    plain_distribution,
    total_variation,
    verify_once,
)

TREES = {
    "widths": {"widths": [2, 1]},
    "siblings": {"widths": [3]},
    "paths": {"paths": [[0], [1], [1, 0]]},
    "likeliest": {"nodes": 3, "top_k": 2},
}


def options(tree: str, children: str) -> TreeOptions:
    return TreeOptions(shape="static", children=children, **TREES[tree])


@pytest.mark.parametrize("children", ["distinct", "independent", "top"])
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_drawn_trees_leave_the_target_as_it_is(tree, children, zeros):
    target, draft = random_draft(3, 1, zeros), random_draft(3, 2, zeros)
    here = context(3, temperature=1.0)
    found = emitted_distribution(
        build("verifier", {"name": "ratio"}),
        lambda chance: grow(draft, chance, options(tree, children), here),
        target,
        2,
    )
    assert total_variation(found, plain_distribution(target, 2)) < 1e-12


@pytest.mark.parametrize("children", ["distinct", "independent"])
def test_q_is_what_siblings_are_drawn_from(children):
    draft = random_draft(3, 5)
    here = context(3, temperature=1.0)
    spelled = torch.zeros(3, 3, dtype=torch.float64)
    for weight, proposal in outcomes(
        lambda chance: grow(draft, chance, options("siblings", children), here)
    ):
        assert proposal.replacement == (children == "independent")
        torch.testing.assert_close(proposal.q, draft(()).view(1, 1, 3))
        first, second, _ = proposal.tokens[0].tolist()
        spelled[first, second] += weight
    q = draft(())
    if children == "independent":
        expected = q[:, None] * q
    else:
        expected = q[:, None] * q / (1 - q[:, None])
        expected.fill_diagonal_(0)
    torch.testing.assert_close(spelled, expected)


def test_without_replacement_rejects_least():
    """The order of the reference: one-hot top-k, with, and without replacement."""
    target, draft = random_draft(5, 11), random_draft(5, 12)
    here = context(5, temperature=1.0)
    ratio = build("verifier", {"name": "ratio"})
    accepted = {}
    for children in ("top", "independent", "distinct"):
        shape = TreeOptions(shape="static", widths=[2], children=children)
        accepted[children] = sum(
            weight * int(outcome.accepted[0])
            for weight, (_, outcome) in outcomes(
                lambda chance, shape=shape: verify_once(
                    ratio, grow(draft, chance, shape, here), target, chance
                )
            )
        )
    assert accepted["distinct"] > accepted["independent"] > accepted["top"]


def test_where_q_runs_out_of_tokens_nodes_are_not_valid():
    def draft(path):
        return torch.tensor([0.5, 0.5, 0.0] if not path else [0.0, 1.0, 0.0]).double()

    here = context(3, temperature=1.0)
    shape = TreeOptions(shape="static", widths=[3, 2], children="distinct")
    for _, proposal in outcomes(lambda chance: grow(draft, chance, shape, here)):
        paths = paths_of(proposal)
        assert {p for p in paths if p} == {(0,), (1,), (0, 1), (1, 1)}
        assert paths[2] is None
