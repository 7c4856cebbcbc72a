"""EOS ids and stop strings, one token at a time and through blocks of drafted tokens."""

from functools import cache

import pytest
from harness import requests, run_engine, tiny, tokens, with_eos
from hypothesis import given, settings
from hypothesis import strategies as st
from known_draft import KnownDraft

from draftmesh.stages.engine.stopping import Stopper
from draftmesh.stages.model.bytetokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer(258)
NEW = 16


def encode(text):
    return TOKENIZER(text)["input_ids"]


def first_end(stopper, ids):
    """(tokens until the end, why) when looking after every token."""
    for count in range(1, len(ids) + 1):
        reason = stopper.check(ids[:count])
        if reason is not None:
            return count, reason
    return None


def slow_end(ids, stop):
    """Tokens until the whole text so far holds a stop string, and the text before the first."""
    for count in range(1, len(ids) + 1):
        text = TOKENIZER.decode(ids[:count], skip_special_tokens=True)
        places = [text.find(s) for s in stop if s in text]
        if places:
            return count, text[: min(places)]
    return None


@given(st.data())
def test_stop_strings_end_at_the_first_token_that_completes_one(data):
    text = data.draw(st.text("ab é\n", min_size=1, max_size=30))
    stop = data.draw(st.lists(st.text("ab é\n", min_size=1, max_size=4), min_size=1, max_size=3))
    ids, stopper = encode(text), Stopper(TOKENIZER, (), stop)
    wanted = slow_end(ids, stop)
    if wanted is None:
        assert first_end(stopper, ids) is None
        assert stopper.text(ids) == text
    else:
        count, before = wanted
        assert first_end(stopper, ids) == (count, "stop_string")
        assert stopper.text(ids[:count]) == before


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (["a", "is", ","], "Th"),  # "is" comes first, though "a" is first in the list
        (["isa", "is"], "Th"),
        (["sa", "isa"], "Th"),  # both end at the same token: the longer one starts earlier
        (["nothing"], "Thisa,"),
    ],
)
def test_the_earliest_stop_string_wins(stop, text):
    ids = encode("Thisa,")
    stopper = Stopper(TOKENIZER, (), stop)
    count, _ = first_end(stopper, ids) or (len(ids), None)
    assert stopper.text(ids[:count]) == text


def test_a_stop_string_far_behind_a_long_text_is_found():
    ids = encode("x" * 500 + "é" * 8)
    assert first_end(Stopper(TOKENIZER, (), ["éééé"]), ids) == (508, "stop_string")


def test_eos_comes_before_a_stop_string_and_is_no_text():
    stopper = Stopper(TOKENIZER, (0, 7), ["a"])
    assert stopper.check([*encode("b"), 0]) == "stop"
    assert stopper.check([*encode("b"), 7]) == "stop"
    assert stopper.check(encode("b")) is None
    assert stopper.text([*encode("b"), 0]) == "b"


def test_a_model_without_tokenizer_has_no_text():
    stopper = Stopper(None, (3,), ())
    assert stopper.check([3]) == "stop"
    assert stopper.text([4, 3]) == ""


@cache
def endless():
    """A model without EOS, and its plain completions, longer than asked for."""
    setup = with_eos(tiny("llama"))
    return setup, tokens(run_engine(setup, requests(max_new_tokens=NEW + 8)))


@settings(max_examples=40)
@given(st.data())
def test_blocks_end_where_single_tokens_end(data):
    """Stop strings taken from the text itself, across the edges of drafted blocks."""
    setup, known = endless()
    tokenizer = setup.checkpoint.tokenizer
    texts = [tokenizer.decode(line[:NEW], skip_special_tokens=True) for line in known]
    stop = []
    for _ in range(data.draw(st.integers(1, 3))):
        text = data.draw(st.sampled_from(texts))
        start = data.draw(st.integers(0, len(text) - 1))
        stop.append(text[start : start + data.draw(st.integers(1, 4))])
    asked = requests(max_new_tokens=NEW, stop=tuple(stop))
    hits = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    plain = run_engine(setup, asked)
    ours = run_engine(
        setup,
        asked,
        lambda context: KnownDraft(context, known, hits),
        batch_size=data.draw(st.sampled_from([1, 5])),
    )
    ended = 0
    for completion, other in zip(ours.completions, plain.completions, strict=True):
        assert completion.token_ids == other.token_ids
        assert completion.text == other.text
        assert completion.finish_reason == other.finish_reason
        assert not any(s in completion.text for s in stop)
        ended += completion.finish_reason == "stop_string"
    assert ended
