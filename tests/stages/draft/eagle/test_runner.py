import pytest
import torch
from eagle_reference import eagle1, eagle3, eagle3_logits
from torch import Tensor

from draftmesh.registry.contracts.draft import Step
from draftmesh.stages.draft.eagle.runner import HeadRunner
from draftmesh.stages.draft.eagle.safeai import tensors
from draftmesh.stages.draft.tree.frontier import Frontier
from draftmesh.stages.model.target import HFTarget


def features(target: HFTarget, ids: list[int]) -> dict[int, Tensor]:
    cache = target.new_cache(1, len(ids))
    layers = (2, 3, target.num_layers)
    return target.forward(torch.tensor([ids]), cache, capture=layers).features


def step(target: HFTarget, ids: list[int], start: int, following: int) -> Step:
    """The tokens from `start` on as one step of the decode loop."""
    tokens = torch.tensor([ids[start:]])
    return Step(
        tokens,
        torch.tensor([tokens.shape[1]]),
        torch.arange(start, len(ids))[None],
        {layer: f[:, start:] for layer, f in features(target, ids).items()},
        torch.tensor([following]),
    )


IDS, NEXT, DRAFTED = [5, 17, 40, 8, 63], 22, [71, 9]


def test_version_3_follows_the_published_layout(target, make_head):
    head = make_head(3, capture=(2, 3, 3))
    runner = HeadRunner(head, target, 1, 32)
    runner.observe(step(target, IDS, 0, NEXT))
    got = [runner.output]
    for depth, token in enumerate(DRAFTED, 1):
        got.append(runner.follow(got[-1], torch.tensor([token]), depth))

    w = tensors(head)
    f = features(target, IDS)
    g = torch.cat([f[2], f[3], f[3]], -1)[0] @ w["fc.weight"].T
    following = [*IDS[1:], NEXT]
    for depth, token in enumerate([*DRAFTED, None]):
        output = eagle3(w, target.embed(torch.tensor(following)), g)
        torch.testing.assert_close(got[depth][0, 0], output[-1])
        draft = eagle3_logits(w, output[-1])
        full = runner.logits(got[depth])[0, 0]
        torch.testing.assert_close(full[w["d2t"] + torch.arange(60)], draft)
        assert full[~w["t2d"]].eq(-torch.inf).all()
        g = torch.cat([g, output[-1:]])
        following.append(token)


def test_version_1_follows_the_published_layout(target, make_head):
    head = make_head(1, fc_bias=True)
    runner = HeadRunner(head, target, 1, 32)
    runner.observe(step(target, IDS, 0, NEXT))
    got = [runner.output]
    for depth, token in enumerate(DRAFTED, 1):
        got.append(runner.follow(got[-1], torch.tensor([token]), depth))

    w = tensors(head)
    assert {"layers.0.input_layernorm.weight", "norm.weight", "lm_head.weight"}.isdisjoint(w)
    hidden = features(target, IDS)[target.num_layers][0]
    following = [*IDS[1:], NEXT]
    for depth, token in enumerate([*DRAFTED, None]):
        output = eagle1(w, target.embed(torch.tensor(following)), hidden)
        torch.testing.assert_close(got[depth][0, 0], output[-1])
        torch.testing.assert_close(runner.logits(got[depth])[0, 0], target.lm_head(output[-1]))
        hidden = torch.cat([hidden, output[-1:]])
        following.append(token)


def test_drafted_keys_are_replaced_by_true_ones(target, make_head):
    head = make_head(3)
    once, stepwise = (HeadRunner(head, target, 1, 32) for _ in range(2))
    once.observe(step(target, [*IDS, NEXT, 71], 0, 30))
    stepwise.observe(step(target, IDS, 0, NEXT))
    drafted = stepwise.output
    for depth, token in enumerate([71, 9, 4], 1):
        drafted = stepwise.follow(drafted, torch.tensor([token]), depth)
    before = stepwise.cache.keys[:, :, 5:7].clone()
    stepwise.observe(step(target, [*IDS, NEXT, 71], 5, 30))
    assert not torch.allclose(before, stepwise.cache.keys[:, :, 5:7])
    torch.testing.assert_close(stepwise.cache.keys[:, :, :7], once.cache.keys[:, :, :7])
    torch.testing.assert_close(stepwise.output, once.output)


def test_ragged_rows_equal_single_ones(target, make_head):
    head = make_head(3)
    prompts = [[5, 17, 40, 8, 63], [7, 2], [90, 1, 33]]
    follow = [22, 50, 3]
    width = max(map(len, prompts))
    steps = [step(target, p, 0, n) for p, n in zip(prompts, follow, strict=True)]

    def padded(rows: list[Tensor]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True)

    runner = HeadRunner(head, target, 3, 32)
    runner.observe(
        Step(
            padded([s.tokens for s in steps]),
            torch.tensor([len(p) for p in prompts]),
            torch.arange(width).expand(3, -1),
            {i: padded([s.features[i] for s in steps]) for i in head.config.capture},
            torch.tensor(follow),
        )
    )
    output = runner.follow(runner.output, torch.tensor([71, 72, 73]), 1)
    runner.select(torch.tensor([2, 1]))
    for row, index in enumerate([2, 1]):
        alone = HeadRunner(head, target, 1, 32)
        alone.observe(steps[index])
        torch.testing.assert_close(runner.output[row], alone.output[0])
        again = alone.follow(alone.output, torch.tensor([71 + index]), 1)
        torch.testing.assert_close(output[index], again[0])


@pytest.mark.parametrize("version", [1, 3])
def test_a_trees_nodes_see_their_own_path_only(target, make_head, version):
    head = make_head(version)
    runner = HeadRunner(head, target, 2, 32)
    prompts = [IDS, [7, 2]]
    steps = [step(target, p, 0, NEXT) for p in prompts]
    tokens = torch.tensor([IDS, [7, 2, 0, 0, 0]])
    features = {
        i: torch.nn.utils.rnn.pad_sequence([s.features[i][0] for s in steps], batch_first=True)
        for i in head.config.capture
    }
    positions = torch.arange(5).expand(2, -1)
    following = torch.tensor([NEXT, NEXT])
    runner.observe(Step(tokens, torch.tensor([5, 2]), positions, features, following))
    runner.begin()
    parents = torch.tensor([[-1, -1, 0, 1, 1, 3], [-1, -1, 1, 0, 1, 2]])
    nodes = torch.tensor([[10, 11, 12, 13, 14, 15], [20, 21, 22, 23, 24, 25]])
    outputs = []
    for first, end in ((0, 2), (2, 5), (5, 6)):
        level = nodes[:, first:end]
        everything = torch.arange(end - first)
        frontier = Frontier(level, parents[:, :end], level >= 0, first, everything)
        outputs.append(runner.expand(frontier))
    got = torch.cat(outputs, 1)
    for row, prompt in enumerate(steps):
        for node in range(6):
            path = [node]
            while parents[row, path[0]] >= 0:
                path.insert(0, int(parents[row, path[0]]))
            alone = HeadRunner(head, target, 1, 32)
            alone.observe(prompt)
            output = alone.output
            for depth, at in enumerate(path, 1):
                output = alone.follow(output, nodes[row, at][None], depth)
            torch.testing.assert_close(got[row, node], output[0, 0])
