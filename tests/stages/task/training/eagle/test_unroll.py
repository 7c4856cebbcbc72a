import pytest
import torch

from draftmesh.registry.contracts.draft import Step
from draftmesh.stages.draft.eagle.runner import HeadRunner
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.batches import load_batch
from draftmesh.stages.task.training.eagle.unroll import unroll

STEPS = 3


@pytest.fixture(params=[{"version": 1}, {"version": 3}, {"version": 3, "kv_heads": 2}])
def recipe(request, make_recipe):
    recipe = make_recipe(**request.param)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in recipe.head.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return recipe


def drafted(recipe, index, place):
    """Outputs of the decode-time runner after `place` tokens, fed the chat's own tokens."""
    chat, head = recipe.chats[index], recipe.head
    target = HFTarget(recipe.checkpoint.model)
    states = recipe.store.read(index).float()
    used = states[:, -1:] if head.config.version == 1 else states[:, :-1]
    runner = HeadRunner(head, target, 1, 128)
    ids = torch.tensor([chat.ids[:place]])
    captured = {}
    for column, layer in enumerate(head.config.capture):
        captured[layer] = used[None, :place, column]
    step = Step(
        ids,
        torch.tensor([place]),
        torch.arange(place)[None],
        captured,
        torch.tensor([chat.ids[place]]),
    )
    runner.observe(step)
    outputs = [runner.output]
    for depth in range(1, STEPS):
        token = torch.tensor([chat.ids[place + depth]])
        outputs.append(runner.follow(outputs[-1], token, depth))
    return [runner.head.normed(output)[0, 0] for output in outputs]


@torch.no_grad()
def test_training_sees_what_drafting_computes(recipe):
    indices = [0, 3, 9]
    batch = load_batch(recipe.store, indices)
    outputs = unroll(recipe.head, batch, recipe.embedding, STEPS)
    compared = 0
    for row, index in enumerate(indices):
        chat = recipe.chats[index]
        for place in range(chat.prompt, len(chat.ids) - STEPS):
            want = drafted(recipe, index, place)
            for step in range(STEPS):
                got = recipe.head.normed(outputs[step])[row, place - chat.prompt]
                torch.testing.assert_close(got, want[step], rtol=1e-4, atol=1e-4)
                compared += 1
    assert compared > 20


def test_measured_acceptance_is_that_of_greedy_chains(recipe):
    index = max(range(24), key=lambda i: len(recipe.chats[i].ids) - recipe.chats[i].prompt)
    chat, head = recipe.chats[index], recipe.head
    if head.config.version == 3:
        head.lm_head.weight.data.mul_(3)
    acceptance = Acceptance(STEPS)
    recipe.loss.measure(load_batch(recipe.store, [index]), ["x"], acceptance)
    right = [0] * STEPS
    places = range(chat.prompt, len(chat.ids) - 1)
    weight = (
        head.lm_head.weight
        if head.config.version == 3
        else recipe.checkpoint.model.lm_head.weight[recipe.loss.vocabulary]
    )
    for place in places:
        room = min(STEPS, len(chat.ids) - place - 1)
        if room < STEPS:
            continue
        for step, output in enumerate(drafted(recipe, index, place)):
            if recipe.loss.vocabulary[(output @ weight.T).argmax()] != chat.ids[place + 1 + step]:
                break
            right[step] += 1
    full = len(chat.ids) - STEPS - chat.prompt
    assert acceptance.right["x"][-1] == right[-1]
    assert acceptance.total["x"][-1] == full


def test_later_answers_cannot_reach_earlier_outputs(recipe):
    batch = load_batch(recipe.store, [9])
    before = unroll(recipe.head, batch, recipe.embedding, 1)[0]
    batch.tokens[0, -1] = 5
    batch.features[0, -1] = 7
    after = unroll(recipe.head, batch, recipe.embedding, 1)[0]
    assert not torch.equal(before[0, -1], after[0, -1])
    torch.testing.assert_close(before[0, :-1], after[0, :-1])
