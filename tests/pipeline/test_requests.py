import pytest
from harness import tiny

from draftmesh.pipeline.requests import RequestOptions, next_turn, requests_of
from draftmesh.registry import UserError
from draftmesh.registry.contracts.request import Completion
from draftmesh.registry.contracts.stage import Prompt

OPTIONS = RequestOptions(20, ("stop",), 9)


def made(*prompts, context=64):
    return requests_of(prompts, tiny("llama").checkpoint, context, OPTIONS)


def test_one_request_per_prompt():
    first, second = made(
        Prompt("a", ("Hi", "and more"), category="chat"), Prompt("b", ("You",), max_new_tokens=3)
    )
    assert (first.id, first.prompt, first.category) == ("a", "Hi", "chat")
    assert (first.index, first.seed, first.stop, first.max_new_tokens) == (0, 9, ("stop",), 20)
    assert (second.index, second.max_new_tokens) == (1, 3)
    tokenizer = tiny("llama").checkpoint.tokenizer
    assert first.token_ids == tuple(tokenizer("Hi")["input_ids"])


def test_history_comes_before_the_turn():
    (request,) = made(Prompt("a", ("Hi",), history=(("user", "Ho"), ("assistant", "Hm"))))
    assert tiny("llama").checkpoint.tokenizer.decode(request.token_ids) == "Ho\n\nHm\n\nHi"


@pytest.mark.parametrize("text", ["x" * 64, "x" * 65])
def test_a_prompt_has_to_leave_room(text):
    with pytest.raises(UserError, match="prompt a has"):
        made(Prompt("a", (text,)))
    assert len(made(Prompt("a", (text[:63],)))[0].token_ids) == 63


def test_the_next_turn_follows_the_reply():
    setup = tiny("llama")
    (first,) = made(
        Prompt("a", ("Hi", "and", "more"), history=(("user", "Ho"), ("assistant", "Hm")))
    )
    second = next_turn(Completion(first, text="Yo"), setup.checkpoint, 64)
    third = next_turn(Completion(second, text="No"), setup.checkpoint, 64)
    assert (third.id, third.index, third.turn, third.prompt, third.later) == ("a", 0, 2, "more", ())
    text = setup.checkpoint.tokenizer.decode(third.token_ids)
    assert text == "\n\n".join(["Ho", "Hm", "Hi", "Yo", "and", "No", "more"])
    with pytest.raises(UserError, match=r"prompt a has .* tokens"):
        next_turn(Completion(first, text="Y" * 64), setup.checkpoint, 64)
