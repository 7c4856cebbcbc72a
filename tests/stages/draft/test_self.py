import pytest
from harness import PROMPTS, requests, run_engine, tiny, tokens, with_eos

from draftmesh.registry import UserError
from draftmesh.stages.draft.self import SelfDraft, left_out_layers


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        ({}, {2, 3, 4, 5}),
        ({"exit_layer": 5}, {5}),
        ({"exit_layer": 1}, {1, 2, 3, 4, 5}),
        ({"skip_layers": [4, 1]}, {1, 4}),
        ({"skip_layers": [0, 1, 2, 3, 4]}, {0, 1, 2, 3, 4}),
    ],
)
def test_which_layers_are_left_out(options, left_out):
    assert left_out_layers(SelfDraft.Config(**options), 6) == left_out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"exit_layer": 6}, r"draft\.exit_layer=6: needs a number from 1 to 5"),
        ({"exit_layer": 0}, r"draft\.exit_layer=0"),
        ({"skip_layers": [6]}, r"draft\.skip_layers=\[6\]"),
        ({"skip_layers": [-1]}, r"draft\.skip_layers=\[-1\]"),
        ({"skip_layers": [0, 1, 2, 3, 4, 5]}, r"draft\.skip_layers"),
        ({"skip_layers": [1], "exit_layer": 2}, "exclude each other"),
    ],
)
def test_impossible_layers(options, named):
    with pytest.raises(UserError, match=named):
        left_out_layers(SelfDraft.Config(**options), 6)


@pytest.mark.parametrize("skipped", [[0], [0, 1], [1], [2], [0, 2]])
def test_any_layers_may_be_left_out(skipped):
    setup = with_eos(tiny("llama"))
    draft = {"name": "self", "k": 3, "skip_layers": skipped}
    result = run_engine(setup, requests(), draft, batch_size=5)
    assert tokens(result) == tokens(run_engine(setup, requests()))
    assert result.counters.drafted


@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
def test_a_row_may_end_with_its_first_token(shape):
    setup = with_eos(tiny("llama"))
    plain = tokens(run_engine(setup, requests()))
    ending = with_eos(tiny("llama"), plain[1][0])
    draft = {"name": "self", "k": 3, "exit_layer": 2, "shape": shape}
    result = tokens(run_engine(ending, requests(), draft, batch_size=5))
    assert result == tokens(run_engine(ending, requests()))
    assert result[1] == plain[1][:1]
    assert max(map(len, result)) > 1


def test_it_is_told_how_many_partial_forwards_there_are():
    setup, made = with_eos(tiny("llama")), []

    def build(context):
        made.append(SelfDraft(SelfDraft.Config(k=4, exit_layer=1), context))
        return made[0]

    run_engine(setup, requests(PROMPTS[:1]), build)
    assert (made[0].depth, made[0].nodes, made[0].target_forwards) == (4, 4, 5)
    assert made[0].capture == ()
    made[0].idle()
