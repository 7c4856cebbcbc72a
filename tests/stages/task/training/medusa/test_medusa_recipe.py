import json
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import log_softmax, silu, softmax

from draftmesh.registry import UserError
from draftmesh.registry.contracts.draft import Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.medusa.loader import load_heads
from draftmesh.stages.draft.medusa.medusa import MedusaDraft
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors
from draftmesh.stages.task.training.batches import load_batch
from draftmesh.stages.task.training.medusa.options import MedusaOptions
from draftmesh.stages.task.training.medusa.recipe import MedusaRecipe
from draftmesh.stages.task.training.progress import Progress

VOCAB = 64


@pytest.fixture
def make_medusa(make_material):
    def make(**changes):
        node = {"heads": 3, "draft_vocab": 40} | changes.pop("medusa", {})
        return MedusaRecipe(make_material(medusa=MedusaOptions(**node), **changes))

    return make


def moved(recipe):
    """The recipe, its heads no longer the identity."""
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in recipe.head.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return recipe


def states(head, hidden, k):
    x = hidden
    for layer in range(head.layers):
        x = x + silu(head.weight[layer, k] @ x + head.bias[layer, k])
    return x


@pytest.mark.parametrize("own", [False, True])
def test_the_loss_is_the_one_written_down(make_medusa, own):
    recipe = moved(make_medusa(medusa={"layers": 2, "own_lm_head": own}))
    vocabulary, head = recipe.loss.vocabulary, recipe.head
    rows = recipe.checkpoint.model.lm_head.weight[vocabulary].float()
    indices = recipe.train[:6]
    batch = load_batch(recipe.store, indices)
    total, weights = torch.tensor(0.0), 0.0
    for row, index in enumerate(indices):
        chat = recipe.chats[index]
        last = batch.features[row, :, -1].float()
        for place in range(chat.prompt, len(chat.ids) - 1):
            if chat.ids[place + 1] not in vocabulary:
                continue
            goal = softmax(rows @ last[place], -1)
            for k in range(3):
                at = place - k - 1
                if at < chat.prompt - 1:
                    continue
                lm_head = head.lm_heads[k] if own else rows
                guess = log_softmax(lm_head @ states(head, last[at], k), -1)
                total = total - 0.8**k * (goal * guess).sum()
                weights += 0.8**k
    loss = recipe.loss(batch)
    torch.testing.assert_close(loss, total / weights, rtol=1e-4, atol=1e-5)
    loss.backward()
    assert recipe.head.weight.grad.abs().max() > 0
    assert not own or head.lm_heads.grad.abs().max() > 0


def test_fresh_heads_repeat_the_targets_choice(make_medusa):
    recipe = make_medusa()
    batch = load_batch(recipe.store, recipe.train[:2])
    hidden = batch.features[0, :5, -1].float()
    rows = recipe.checkpoint.model.lm_head.weight[recipe.loss.vocabulary]
    for head in range(3):
        best = recipe.loss._best(recipe.head.states(hidden, 3)[head], head)
        assert torch.equal(best, recipe.loss.vocabulary[(hidden @ rows.T).argmax(-1)])


def saved(recipe, folder):
    recipe.save(folder, Progress(1, 1, None), {"val_acceptance_length": 1.0})
    return folder


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("size", [40, VOCAB])
def test_both_layouts_load_as_the_trained_heads(make_medusa, tmp_path, own, size):
    recipe = moved(make_medusa(medusa={"own_lm_head": own, "draft_vocab": size}))
    folder = saved(recipe, tmp_path / "head")
    config = json.loads((folder / "config.json").read_text())
    assert (config["draftmesh_draft"], config["target"]) == ("medusa", "tiny")
    assert config.get("version") == (None if own else "2")
    names = set(load_file(folder / "medusa_lm_head.safetensors"))
    assert ("0.1.weight" in names) == own
    assert ("token_map" in names) == (size < VOCAB)
    for place in (folder, folder / "vllm"):
        loaded = load_heads(place, recipe.target)
        for name in ("weight", "bias"):
            wanted = recipe.head.get_parameter(name).to(torch.bfloat16).float()
            assert torch.equal(loaded.get_parameter(name), wanted)
        if own:
            assert torch.equal(loaded.lm_heads, recipe.head.lm_heads.to(torch.bfloat16).float())
        elif place != folder:
            rows = recipe.loss.rows.to(torch.bfloat16).float()
            assert torch.equal(loaded.lm_heads, rows[None])
        if size < VOCAB:
            assert torch.equal(loaded.token_map, recipe.loss.vocabulary)
    card = (folder / "README.md").read_text()
    assert "3 heads" in card
    assert "draft=medusa" in card
    assert "task.medusa.heads=3" in card


def test_a_training_starts_from_heads(make_medusa, tmp_path):
    first = moved(make_medusa(medusa={"layers": 2}))
    folder = saved(first, tmp_path / "head")
    second = make_medusa(start=str(folder), medusa={"heads": 7, "draft_vocab": 12})
    assert second.head.count == second.depth == 3
    assert torch.equal(second.loss.vocabulary, first.loss.vocabulary)
    for name, value in second.head.named_parameters():
        assert value.requires_grad
        assert torch.equal(value, first.head.get_parameter(name).to(torch.bfloat16).float())
    with pytest.raises(UserError, match=r"task\.start=.*no such folder"):
        make_medusa(start=str(tmp_path / "nowhere"))


@pytest.mark.parametrize("name", ["heads", "layers", "draft_vocab"])
def test_options_that_cannot_work_are_named(name):
    with pytest.raises(UserError, match=rf"task\.medusa\.{name}=0"):
        MedusaOptions(**{name: 0}).check()


class Recorded:
    """Stands in for Acceptance and keeps what it is given."""

    steps = 3

    def __init__(self):
        self.chains = []

    def add(self, style, hits, valid):
        self.chains.append((hits & valid).cummin(0).values.sum(0))


def test_validation_counts_what_the_draft_gets_right(make_medusa, tmp_path):
    """Of the loaded heads, after every prefix of a held-out answer."""
    folder = saved(moved(make_medusa()), tmp_path / "head")
    recipe = make_medusa(start=str(folder))
    index = max(recipe.held, key=lambda i: len(recipe.chats[i].ids))
    chat, recorded = recipe.chats[index], Recorded()
    recipe.loss.measure(load_batch(recipe.store, [index]), ["x"], recorded)
    counted = recorded.chains[0].tolist()

    sampler = Processors(SamplingOptions(), VOCAB)
    context = DraftContext(recipe.target, recipe.checkpoint, sampler, Solo())
    draft = MedusaDraft(MedusaDraft.Config(path=str(folder), k=3, shape="chain"), context)
    right = []
    for length in range(chat.prompt, len(chat.ids) - 1):
        prefix = torch.tensor([chat.ids[:length]])
        rows = (SimpleNamespace(token_ids=chat.ids[:length], index=0),)
        chance = NoiseChance(torch.zeros(1).long(), torch.zeros(1).long())
        draft.start(Rows(rows, chance, 200, None))
        forward = recipe.target.forward(
            prefix, recipe.target.new_cache(1, length), capture=draft.capture
        )
        following = torch.tensor([chat.ids[length]])
        lengths = torch.tensor([length])
        draft.observe(Step(prefix, lengths, prefix, forward.features, following))
        guessed = draft.propose(torch.tensor([3])).tokens[0].tolist()
        truth = chat.ids[length + 1 : length + 4]
        same = [a == b for a, b in zip(guessed, truth, strict=False)]
        right.append(len(same) if all(same) else same.index(False))
    assert counted[: len(right)] == right
    assert sum(right) > 0, "this test needs guesses that are right"


def test_measured_metrics_have_a_rate_per_head(make_medusa):
    recipe = moved(make_medusa())
    metrics = recipe.measure(torch.device("cpu"))
    assert {f"val_accept_{j}" for j in (1, 2, 3)} <= metrics.keys()
    assert "val_accept_4" not in metrics
