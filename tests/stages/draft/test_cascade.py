from dataclasses import replace

import pytest
from harness import requests, run_engine, tiny, tokens
from scripted_draft import SHAPES, ScriptedDraft, registered

from draftmesh.registry import UserError, build_config
from draftmesh.stages.draft.cascade import CascadeDraft
from draftmesh.stages.parallel.ranks import Solo

NUCLEUS = {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.2}
SECONDS = {
    "self": {"name": "self", "exit_layer": 2},
    "self tree": {"name": "self", "exit_layer": 2, **SHAPES["widths"]},
    **{shape: {"name": "scripted", "noise": 1.0, **options} for shape, options in SHAPES.items()},
}


@pytest.fixture(autouse=True)
def _registered():
    with registered():
        yield


def cascade(second, made, **options):
    def built(context):
        node = {"name": "cascade", "second": second, **options}
        made.append(CascadeDraft(build_config(CascadeDraft, node), context))
        return made[-1]

    return built


@pytest.mark.parametrize("sampling", [None, NUCLEUS], ids=["greedy", "nucleus"])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("second", SECONDS)
def test_tokens_equal_plain_decoding_while_both_draft(second, batch_size, sampling):
    asked = requests(max_new_tokens=25)
    plain = run_engine(tiny(), asked, None, "match", sampling, batch_size)
    made = []
    built = cascade(SECONDS[second], made)
    found = run_engine(tiny(), asked, built, "match", sampling, batch_size)
    assert tokens(found) == tokens(plain)
    assert 0 < made[0].facts()["cascade_first_share"] < 1
    assert found.counters.accepted > 0


@pytest.mark.parametrize("batch_size", [1, 5])
def test_the_second_knows_what_the_first_has_drafted(batch_size):
    """A perfect second draft stays perfect, though the first drafts in between."""
    built = cascade({"name": "scripted", **SHAPES["widths"]}, made := [])
    for verifier, sampling in (("match", None), ("match", NUCLEUS), ("ratio", NUCLEUS)):
        asked = requests(max_new_tokens=25)
        run_engine(tiny(), asked, built, verifier, sampling, batch_size)
        second = made[-1].second
        assert isinstance(second, ScriptedDraft)
        drafted = [(a, d) for a, d in second.outcomes if d > 0]
        assert len(drafted) > 5
        assert all(accepted == depth for accepted, depth in drafted)


def test_mixed_rows_carry_the_q_of_the_second():
    class Keeping(CascadeDraft):
        kept: list = []  # noqa: RUF012

        def propose(self, budget):
            proposal = super().propose(budget)
            self.kept.append(proposal)
            return proposal

    config = CascadeDraft.Config(second={"name": "scripted", "noise": 1.0, **SHAPES["widths"]})
    found = run_engine(
        tiny(),
        requests(max_new_tokens=25),
        lambda context: Keeping(config, context),
        "ratio",
        {"temperature": 1.0},
        5,
    )
    assert found.counters.accepted > 0
    mixed = [p for p in Keeping.kept if p.q_index is not None and p.size]
    kinds = {tuple(sorted(set((p.q_index[p.valid] >= 0).tolist()))) for p in mixed}
    assert (False, True) in kinds
    for proposal in mixed:
        deterministic = (proposal.q_index < 0) & proposal.valid
        # One row is drafted by one of the two.
        assert not (deterministic.any(1) & ((proposal.q_index >= 0) & proposal.valid).any(1)).any()


def test_depth_can_be_limited():
    options = {"first": {"name": "ngram", "k": 6}, "k": 2}
    built = cascade({"name": "self", "exit_layer": 2, "k": 4}, made := [], **options)
    found = run_engine(tiny(), requests(max_new_tokens=30), built)
    assert (made[0].depth, made[0].nodes) == (2, 6)
    assert max(found.counters.histogram) <= 2
    made[0].resize(1)
    assert made[0].target_forwards == 2


def test_trees_are_known_as_such():
    built = cascade(
        {"name": "self", **SHAPES["widths"]}, made := [], first={"name": "ngram", "k": 30}
    )
    run_engine(tiny(), requests(max_new_tokens=3), built)
    assert made[0].nodes > made[0].depth


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": "ngrm"}, r"draft=ngrm: unknown; did you mean ngram\?"),
        ({"first": 3}, r"draft\.first: give a draft's name"),
        ({"second": {"k": 3}}, r"draft\.second: give a draft's name"),
        ({"second": {"name": "self", "kk": 3}}, r"draft\.second\.kk: no such option; did you mean"),
        ({"first": {"name": "ngram", "k": "auto"}}, r"draft\.first\.k: "),
    ],
)
def test_mistakes_name_the_option(options, message):
    with pytest.raises(UserError, match=message):
        run_engine(tiny(), requests()[:1], {"name": "cascade", **options})


class Two(Solo):
    """Two data-parallel ranks, of which the other one agrees with everything."""

    def __init__(self):
        super().__init__()
        self.dp = 2

    def agree(self, *values):
        return values


class Counting:
    """A target that counts its forwards."""

    def __init__(self, target):
        self.target, self.forwards = target, 0

    def __getattr__(self, name):
        return getattr(self.target, name)

    def forward(self, *args, **options):
        self.forwards += 1
        return self.target.forward(*args, **options)


def test_other_ranks_find_the_collectives_of_both_drafts():
    """With data-parallel ranks a draft that is not needed enters its forwards all the same."""
    counts = []

    class Noting(CascadeDraft):
        def propose(self, budget):
            target.forwards = 0
            proposal = super().propose(budget)
            counts.append(target.forwards)
            return proposal

    target = Counting(tiny().target)
    config = CascadeDraft.Config(second={"name": "self", "exit_layer": 1, "k": 3})
    run_engine(
        tiny(),
        requests(max_new_tokens=25),
        lambda context: Noting(config, replace(context, target=target, ranks=Two())),
        batch_size=5,
    )
    assert set(counts) == {4}
