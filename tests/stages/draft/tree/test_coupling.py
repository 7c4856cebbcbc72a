import torch
from grown import context, grow, paths_of, random_draft

from draftmesh.registry import build
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.sampling.noise import NoiseChance

VOCAB = 12
PROMPTS = 200


def near(draft, strength):
    """Another model, whose logits differ from the draft's by a little noise."""

    def after(path):
        generator = torch.Generator().manual_seed(hash((7, *path)) % 2**31)
        error = torch.randn(VOCAB, generator=generator, dtype=torch.float64)
        return (draft(path).log() + strength * error).softmax(-1)

    return after


def accepted(options, coupled):
    draft = random_draft(VOCAB, 3)
    target = near(draft, 0.7)
    chance = NoiseChance(torch.zeros(PROMPTS).long(), torch.arange(PROMPTS))
    here = context(VOCAB, coupled, temperature=1.0)
    proposal = grow(draft, chance, options, here, budgets=(9,) * PROMPTS)
    probs = torch.stack(
        [
            torch.stack([target(p or ()) for p in [(), *paths_of(proposal, row)]])
            for row in range(PROMPTS)
        ]
    )
    match = build("verifier", {"name": "match"})
    outcome = match.verify(
        proposal, Distribution(probs), chance, torch.zeros(PROMPTS, dtype=torch.long)
    )
    return float(outcome.accepted.double().mean())


def test_a_coupled_draft_knows_what_the_target_will_draw():
    for options in (
        TreeOptions(shape="static", widths=[2, 2]),
        TreeOptions(shape="dynamic", k=3, nodes=6, top_k=2),
    ):
        assert accepted(options, coupled=True) > 1.3 * accepted(options, coupled=False)


def test_with_the_target_as_its_draft_the_first_child_is_always_taken():
    draft = random_draft(VOCAB, 3)
    chance = NoiseChance(torch.zeros(1).long(), torch.zeros(1).long())
    options = TreeOptions(shape="static", widths=[2, 1, 1])
    here = context(VOCAB, True, temperature=1.0)
    path = paths_of(grow(draft, chance, options, here))[4]
    row = torch.zeros(1, dtype=torch.long)
    for depth, token in enumerate(path):
        probs = draft(path[:depth])[None]
        assert int(chance.sample(probs, row, row + depth, 0)) == token
