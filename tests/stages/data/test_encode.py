import pytest

from draftmesh.registry import UserError
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.stages.data.encode import encode_turns
from draftmesh.stages.model.bytetokenizer import byte_tokenizer

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('system comes first') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def checkpoint(template=None):
    tokenizer = byte_tokenizer(258)
    tokenizer.chat_template = template
    return Checkpoint("toy", None, None, tokenizer, (0,))


def text(given, turns, **options):
    ids = encode_turns(given, turns, 100, "p7", **options)
    assert all(type(i) is int for i in ids)
    return given.tokenizer.decode(ids)


def test_without_a_template_the_text_is_encoded_as_it_is():
    assert text(checkpoint(), ["Hi  there"]) == "Hi  there"
    assert text(checkpoint(), ["a", "b"], replies=["r"]) == "a\n\nr\n\nb"


def test_a_template_frames_every_message():
    chat = checkpoint(TEMPLATE)
    assert text(chat, ["Hi"]) == "[user]Hi[assistant]"
    assert (
        text(chat, ["a", "b"], replies=["r"], history=[("system", "s"), ("user", "u")])
        == "[system]s[user]u[user]a[assistant]r[user]b[assistant]"
    )


def test_a_prompt_needs_room_for_one_more_token():
    assert len(encode_turns(checkpoint(), ["x" * 9], 10, "p7")) == 9
    with pytest.raises(UserError, match=r"prompt p7 has 10 tokens.*context of 10"):
        encode_turns(checkpoint(), ["x" * 10], 10, "p7")


def test_an_empty_prompt_is_refused():
    with pytest.raises(UserError, match="prompt p7 is empty"):
        encode_turns(checkpoint(), [""], 10, "p7")


def test_a_model_without_tokenizer_is_refused():
    with pytest.raises(UserError, match="model toy has no tokenizer"):
        encode_turns(Checkpoint("toy", None, None, None, ()), ["x"], 10, "p7")


def test_what_the_template_refuses_is_told():
    with pytest.raises(UserError, match=r"prompt p7 .*system comes first"):
        text(checkpoint(TEMPLATE), ["a"], history=[("user", "u"), ("system", "s")])
