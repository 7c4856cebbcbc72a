from types import SimpleNamespace

import pytest
from harness import SIZE, requests, run_engine, tiny, tokens, with_eos

from draftmesh.stages.model.context import context_note, context_of

SWITCH = 32
PAIRS = SIZE["hidden_size"] // SIZE["heads"] // 2
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * PAIRS,
    "long_factor": [4.0] * PAIRS,
    "original_max_position_embeddings": SWITCH,
}


def config(**rope):
    return SimpleNamespace(max_position_embeddings=128, rope_parameters=rope)


@pytest.mark.parametrize(
    ("rope", "context"),
    [
        ({"rope_type": "default"}, 128),
        ({"rope_type": "yarn", "original_max_position_embeddings": 32}, 128),
        (LONGROPE, 32),
        ({"full_attention": LONGROPE, "sliding_attention": {"rope_type": "default"}}, 32),
    ],
)
def test_only_longrope_ends_where_its_frequencies_change(rope, context):
    assert context_of(config(**rope)) == context
    assert (context_note(config(**rope)) is None) == (context == 128)


def test_a_model_without_a_limit_has_none():
    assert context_of(SimpleNamespace()) == 1 << 20


@pytest.mark.parametrize("draft", ["ngram", "self"])
def test_longrope_is_lossless_in_batches_up_to_there(draft):
    extra = {"rope_parameters": LONGROPE, "original_max_position_embeddings": SWITCH}
    setup = tiny.__wrapped__("phi3", extra=extra)
    setup = with_eos(setup)
    asked = requests([(5, 9, 9, 14, 5, 9, 5, 9), (7, 8) * 8, (60, 12, 33)], max_new_tokens=60)
    node = {"name": draft, "k": 4} | ({"exit_layer": 2} if draft == "self" else {"min_match": 1})
    plain = run_engine(setup, asked, None, batch_size=1)
    assert [len(c.request.token_ids) + len(c.token_ids) for c in plain.completions] == [SWITCH] * 3
    drafted = run_engine(setup, asked, node, batch_size=3)
    assert tokens(drafted) == tokens(plain)
    assert drafted.counters.accepted > 0
