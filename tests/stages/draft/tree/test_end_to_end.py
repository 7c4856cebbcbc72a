"""Trees through the decode loop: the target plus noise drafts for the target, in float64."""

import pytest
from harness import requests, run_engine, tiny, tokens
from scripted_draft import SHAPES, ScriptedDraft, depths, registered

from draftmesh.stages.model.target import HFTarget

NUCLEUS = {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.2}
NOISES = (0.0, 0.7, 1.5, 30.0)


@pytest.fixture(autouse=True)
def _registered():
    with registered():
        yield


def asked(batch_size):
    """A full batch, or two prompts one after the other."""
    return requests() if batch_size == 5 else requests()[1:3]


def run(shape, noise, verifier="match", sampling=None, batch_size=1, **options):
    node = {"name": "scripted", "noise": noise, **SHAPES[shape], **options}
    generation = run_engine(tiny(), asked(batch_size), node, verifier, sampling, batch_size)
    return tokens(generation), ScriptedDraft.last


@pytest.mark.parametrize("sampling", [None, NUCLEUS], ids=["greedy", "nucleus"])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_tokens_equal_plain_decoding_whatever_is_accepted(shape, batch_size, sampling):
    plain = tokens(run_engine(tiny(), asked(batch_size), None, "match", sampling, batch_size))
    seen = set()
    for noise in NOISES:
        found, draft = run(shape, noise, "match", sampling, batch_size)
        assert found == plain
        seen |= draft.seen()
    assert seen == {"zero", "partial", "full"}


@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("children", ["auto", "independent", "top"])
@pytest.mark.parametrize("shape", ["static", "widths", "paths"])
def test_ratio_accepts_a_perfect_draft_and_rejects_a_bad_one(shape, children, batch_size):
    if children == "top":
        greedy, _ = run(shape, 0.5, "ratio", None, batch_size, children=children)
        assert greedy == tokens(run_engine(tiny(), asked(batch_size)))
    seen = set()
    for noise in NOISES:
        _, draft = run(shape, noise, "ratio", NUCLEUS, batch_size, children=children)
        if noise == 0 and children != "top":
            assert draft.seen() == {"full"}
        drawn = [p for p in draft.proposals if p.size and p.q is not None]
        assert bool(drawn) == (children != "top")
        assert all(p.replacement == (children == "independent") for p in drawn)
        seen |= draft.seen()
    assert seen == {"zero", "partial", "full"}


@pytest.mark.parametrize("sampling", [None, NUCLEUS], ids=["greedy", "nucleus"])
def test_a_perfect_static_draft_is_accepted_to_the_end(sampling):
    """Its key/values must be right after every accepted path, in a ragged batch too."""
    for batch_size in (1, 5):
        for shape in ("chain", "static", "widths", "paths"):
            _, draft = run(shape, 0.0, "match", sampling, batch_size)
            assert draft.seen() == {"full"}, (shape, batch_size)


@pytest.mark.parametrize("shape", ["widths", "dynamic"])
def test_a_tree_can_be_made_smaller_on_the_way(shape):
    plain = tokens(run_engine(tiny(), requests()))
    with registered():
        sizes = iter([1, 3, 2] * 100)
        propose = ScriptedDraft.propose

        class Changing(ScriptedDraft):
            def propose(self, budget):
                depth = next(sizes)
                self.resize(depth)
                proposal = propose(self, budget.clamp(max=depth))
                assert int(depths(proposal).max()) <= depth
                assert proposal.size <= self.full.cut(depth).nodes
                return proposal

        options = ScriptedDraft.Config(noise=0.5, **SHAPES[shape])
        generation = run_engine(
            tiny(), requests(), lambda context: Changing(options, context), batch_size=5
        )
    assert tokens(generation) == plain


@pytest.mark.parametrize("sampling", [None, NUCLEUS], ids=["greedy", "nucleus"])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("part", [{"exit_layer": 2}, {"skip_layers": [1]}], ids=["exit", "skip"])
def test_self_speculation_takes_trees(part, shape, batch_size, sampling):
    plain = tokens(run_engine(tiny(), asked(batch_size), None, "match", sampling, batch_size))
    node = {"name": "self", **part, **SHAPES[shape]}
    generation = run_engine(tiny(), asked(batch_size), node, "match", sampling, batch_size)
    assert tokens(generation) == plain
    assert generation.counters.accepted > 0
    assert generation.counters.histogram[0] > 0


class Recording(HFTarget):
    """Remembers how many layers each forward ran."""

    def forward(self, *args, layers=None, **options):
        self.ran = [*getattr(self, "ran", []), len(layers or self.all_layers)]
        return super().forward(*args, layers=layers, **options)


@pytest.mark.parametrize("shape", SHAPES)
def test_self_speculation_resumes_unless_the_tree_was_reordered(shape):
    setup = tiny("llama", Recording)
    setup.target.ran = []
    node = {"name": "self", "exit_layer": 1, **SHAPES[shape]}
    run_engine(setup, requests(max_new_tokens=20)[:1], node)
    assert setup.target.ran.pop(0) == 3
    if setup.target.ran[-1] == 3:  # nothing left to draft before the last token
        setup.target.ran.pop()
    assert set(setup.target.ran) == ({1, 3} if shape == "dynamic" else {1, 2})


@pytest.mark.parametrize("shape", ["static", "dynamic"])
@pytest.mark.parametrize("arch", ["mistral", "gpt_oss"])
def test_trees_reach_past_windows_and_up_to_the_context(arch, shape):
    setup = tiny(arch, context=32)
    long = requests(max_new_tokens=60)
    plain = tokens(run_engine(setup, long, None, batch_size=5))
    assert max(map(len, plain)) > 25
    for node in ({"name": "scripted", "noise": 0.5}, {"name": "self"}):
        found = run_engine(setup, long, {**node, **SHAPES[shape]}, batch_size=5)
        assert tokens(found) == plain
        assert found.counters.accepted > 0
