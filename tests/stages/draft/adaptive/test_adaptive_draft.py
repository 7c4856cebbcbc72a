import itertools
from dataclasses import dataclass

import pytest
from harness import requests, run_engine, tiny, tokens
from scripted_draft import SHAPES, ScriptedDraft

from draftmesh.registry import build, build_config, get
from draftmesh.registry.contracts.adaptive import Adaptive, Informative
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.adaptive.draft import AdaptiveDraft
from draftmesh.stages.draft.adaptive.node import at_most, is_automatic
from draftmesh.stages.draft.self import SelfDraft
from draftmesh.stages.engine.native import NativeEngine
from draftmesh.stages.parallel.ranks import Solo

NUCLEUS = {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.2}


class Ticks:
    """A clock that says what time it is: every reading takes what the last round cost."""

    def __init__(self, cost):
        self.cost, self.now, self.draft = cost, 0.0, None

    def __call__(self):
        self.now += self.cost(self.draft.size)
        return self.now


def adaptive(make, cost):
    """A builder of AdaptiveDraft over `make(context)`, with rounds of known cost; and a list that
    will hold it."""
    made = []

    def built(context):
        clock = Ticks(cost)
        clock.draft = AdaptiveDraft(make(context), context.ranks, clock)
        made.append(clock.draft)
        return clock.draft

    return built, made


def scripted(noise, **options):
    return lambda context: ScriptedDraft(ScriptedDraft.Config(noise=noise, **options), context)


@pytest.mark.parametrize("sampling", [None, NUCLEUS], ids=["greedy", "nucleus"])
@pytest.mark.parametrize("shape", ["chain", "widths", "dynamic"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_tokens_do_not_depend_on_the_sizes(batch_size, shape, sampling):
    asked = requests(max_new_tokens=40)
    plain = run_engine(tiny(), asked, None, "match", sampling, batch_size)
    options = {**SHAPES[shape], "k": 8}
    for noise, dear in ((0.5, 0.1), (30.0, 1.0)):
        built, made = adaptive(scripted(noise, **options), lambda size, d=dear: 1 + d * size)
        found = run_engine(tiny(), asked, built, "match", sampling, batch_size)
        assert tokens(found) == tokens(plain)
        assert len(made[0].controller.used) >= 2
    assert made[0].controller.main.best == 0


def test_good_and_cheap_drafts_get_long():
    built, made = adaptive(scripted(0.0, k=16), lambda size: 1 + 0.01 * size)
    run_engine(tiny(), requests(max_new_tokens=100)[:3], built)
    assert made[0].facts()["chosen_k"] > 4
    assert "tokens in" in made[0].facts()["chosen_k_reason"]
    assert made[0].facts()["mean_k"] > 1


def test_drafts_that_cost_too_much_are_turned_off_without_target_forwards():
    config = SelfDraft.Config(exit_layer=2, k=8)
    built, made = adaptive(lambda context: SelfDraft(config, context), lambda size: 1 + 3 * size)
    found = run_engine(tiny(), requests(max_new_tokens=60)[:2], built)
    draft = made[0]
    assert draft.facts()["chosen_k"] == 0
    draft.settle(0)
    assert draft.target_forwards == 0
    draft.settle(3)
    assert draft.target_forwards == 4
    assert found.counters.drafted > 0


def test_it_is_what_the_loop_and_the_results_ask_for():
    built, made = adaptive(scripted(1.0, **SHAPES["chain"]), lambda size: 1.0)
    run_engine(tiny(), requests()[:1], built)
    assert isinstance(made[0], Adaptive)
    assert isinstance(made[0], Informative)
    assert not isinstance(made[0].inner, Adaptive)


@dataclass
class Follower(Solo):
    """A rank that does what another one wants."""

    orders: object = None

    def __post_init__(self):
        super().__init__()
        self.rank = 1

    def agree(self, *values):
        busy, drafts, size = values
        assert size == -1, "only rank 0 has wishes"
        return busy, drafts, next(self.orders)


def test_every_rank_drafts_what_rank_0_wants():
    setup = tiny()
    orders = [3, 3, 0, 1, 1, 0, 2]
    ranks = Follower(itertools.chain(orders, itertools.repeat(4)))
    sizes = []

    class Noting(AdaptiveDraft):
        def propose(self, budget):
            proposal = super().propose(budget)
            sizes.append((self.size, proposal.size))
            return proposal

    sampler = build("sampling", {"name": "processors"}, setup.target.vocab_size)
    context = DraftContext(setup.target, setup.checkpoint, sampler, ranks)
    draft = Noting(scripted(30.0, k=5)(context), ranks)
    engine = NativeEngine(
        NativeEngine.Config(),
        setup.checkpoint,
        setup.target,
        draft,
        build("verifier", {"name": "match"}),
        sampler,
        ranks,
    )
    engine.generate(requests()[:1], 1)
    # The first order is given while the prompt is prefilled.
    assert [size for size, _ in sizes[:7]] == orders
    assert [nodes for _, nodes in sizes[:7]] == orders


@pytest.mark.parametrize(
    ("node", "k"),
    [
        ({"name": "ngram"}, 16),
        ({"name": "small", "shape": "dynamic"}, 8),
        ({"name": "small", "shape": "static", "widths": [1] * 10}, 10),
        ({"name": "small", "shape": "static", "paths": [[0], [0, 1]]}, 8),
    ],
)
def test_auto_is_resolved_before_the_draft_sees_it(node, k):
    automatic = {**node, "k": "auto"}
    assert is_automatic(automatic)
    assert not is_automatic(node)
    assert at_most(node) == node
    assert at_most(automatic)["k"] == k
    assert build_config(get("draft", node["name"]), at_most(automatic)).k == k
