import json

import pytest

from draftmesh.registry import UserError
from draftmesh.stages.task.training.corpus import fingerprint, load_corpus, split


def write(path, *rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_prompt_and_answer(checkpoint, tmp_path):
    tokenizer = checkpoint.tokenizer
    file = write(
        tmp_path / "a.jsonl",
        {"prompt": "ab", "response": "cde", "style": "x", "temperature": 0.0, "finish": "stop"},
        {"prompt": "ab", "response": "cde", "finish": "length", "temperature": 0.7},
    )
    whole, cut = load_corpus(file, tokenizer, 0)
    assert list(whole.ids) == [*tokenizer("abcde").input_ids, 0]
    assert (whole.prompt, whole.style, whole.greedy) == (2, "x", True)
    assert list(cut.ids) == tokenizer("abcde").input_ids
    assert not cut.greedy


def test_messages_and_the_chat_template(checkpoint, tmp_path):
    messages = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"}]
    file = write(tmp_path / "a.jsonl", {"messages": messages})
    tokenizer = checkpoint.tokenizer.__class__(tokenizer_object=checkpoint.tokenizer._tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content }}!{% endfor %}"
        "{% if add_generation_prompt %}?{% endif %}"
    )
    (chat,) = load_corpus(file, tokenizer, None)
    assert list(chat.ids) == tokenizer("ab!?cd").input_ids
    assert chat.prompt == 4


def test_the_samples_of_a_run_are_read_as_they_are(checkpoint, tmp_path):
    row = {"prompt": "ab", "prompt_tokens": 2, "text": "cd", "finish_reason": "stop"}
    file = write(
        tmp_path / "samples.jsonl",
        row | {"token_ids": [7, 8, 0], "category": "math", "temperature": 0.0},
        row | {"token_ids": [7, 8, 9], "finish_reason": "length"},
        row | {"token_ids": [7, 8, 0], "prompt_tokens": 30},
    )
    whole, cut = load_corpus(file, checkpoint.tokenizer, 0)
    assert list(whole.ids) == [*checkpoint.tokenizer("ab").input_ids, 7, 8, 0]
    assert (whole.prompt, whole.style, whole.greedy) == (2, "math", True)
    assert (cut.ids[2:], cut.style, cut.greedy) == ((7, 8, 9), "chat", False)


def test_long_chats_are_cut_and_long_prompts_left_out(checkpoint, tmp_path):
    file = write(
        tmp_path / "a.jsonl",
        {"prompt": "ab", "response": "cdefgh"},
        {"prompt": "abcdefgh", "response": "ij"},
    )
    (chat,) = load_corpus(file, checkpoint.tokenizer, 0, longest=5)
    assert len(chat.ids) == 5


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", ":2 is not JSON"),
        ({"text": "x"}, ":2 has neither"),
        ({"prompt": "x", "token_ids": "y"}, ":2 has `token_ids`"),
        ({"messages": [{"role": "user", "content": "x"}]}, "assistant's answer"),
    ],
)
def test_bad_lines_are_named(checkpoint, tmp_path, row, message):
    file = write(tmp_path / "a.jsonl", {"prompt": "ab", "response": "cd"}, row)
    with pytest.raises(UserError, match=r"data\.path") as caught:
        load_corpus(file, checkpoint.tokenizer, 0)
    assert message in str(caught.value)


def test_missing_and_damaged_files(checkpoint, tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load_corpus(tmp_path / "none.jsonl", checkpoint.tokenizer, 0)
    (tmp_path / "a.jsonl.gz").write_bytes(b"not gzip")
    with pytest.raises(UserError, match="cannot be read"):
        load_corpus(tmp_path / "a.jsonl.gz", checkpoint.tokenizer, 0)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(UserError, match="no usable chat"):
        load_corpus(tmp_path / "empty.jsonl", checkpoint.tokenizer, 0)


def test_equal_prompts_are_never_split(checkpoint, tmp_path):
    rows = [{"prompt": p, "response": "cd" * n} for p in "abcdefghij" for n in (1, 2, 3)]
    chats = load_corpus(write(tmp_path / "a.jsonl", *rows), checkpoint.tokenizer, 0)
    train, held = split(chats, 0.3, seed=1)
    assert sorted(train + held) == list(range(30))
    assert len(held) == 9
    assert {chats[i].ids[0] for i in train}.isdisjoint(chats[i].ids[0] for i in held)
    assert split(chats, 0.3, seed=1) == (train, held)
    assert split(chats, 0.3, seed=2) != (train, held)
    assert set(split(chats, 0.1, seed=1)[1]) < set(held)


def test_fingerprint_sees_tokens_and_prompts(checkpoint, tmp_path):
    one = load_corpus(
        write(tmp_path / "a", {"prompt": "ab", "response": "cd"}), checkpoint.tokenizer, 0
    )
    two = load_corpus(
        write(tmp_path / "b", {"prompt": "abc", "response": "d"}), checkpoint.tokenizer, 0
    )
    assert one[0].ids == two[0].ids
    assert fingerprint(one) != fingerprint(two)
