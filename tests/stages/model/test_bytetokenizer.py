import pytest

from draftmesh.stages.model.bytetokenizer import byte_tokenizer

TEXT = "Hello,\n\twörld 中文 ~ 🙂!"


def test_every_text_survives_a_round_trip():
    tokenizer = byte_tokenizer(258)
    ids = tokenizer(TEXT)["input_ids"]
    assert len(tokenizer) == 258
    assert len(ids) == len(TEXT.encode())
    assert tokenizer.decode(ids) == TEXT


@pytest.mark.parametrize("size", [4, 16, 40, 300])
def test_ids_stay_below_the_vocabulary(size):
    tokenizer = byte_tokenizer(size)
    ids = tokenizer(TEXT)["input_ids"]
    assert len(tokenizer) <= size
    assert len(ids) == len(TEXT.encode())
    assert max(ids) < size


def test_eos_is_special_and_there_is_no_template():
    tokenizer = byte_tokenizer(64)
    assert tokenizer.eos_token_id == 0
    assert tokenizer("a<eos>b")["input_ids"][1] == 0
    assert tokenizer.decode([0, 4], skip_special_tokens=True) == "b"
    assert tokenizer.chat_template is None
