import gzip
import json

import pytest

from draftmesh.registry import UserError
from draftmesh.registry.contracts.stage import Prompt
from draftmesh.stages.data.jsonl import Jsonl

LINES = [
    {"question_id": 82, "category": "writing", "turns": ["one", "two"]},
    {"id": "b", "prompt": "three", "max_new_tokens": 5, "extra": 1},
    {"prompt": "four ü"},
    {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "v"},
            {"role": "assistant", "content": "the answer"},
        ]
    },
]
HISTORY = (("system", "s"), ("user", "u"), ("assistant", "a"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "prompts.jsonl"


def load(path, **options):
    return Jsonl(Jsonl.Config(path=str(path), **options)).load()


def content(lines):
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()


def test_every_format(path):
    path.write_bytes(content(LINES))
    assert load(path, turns="all") == [
        Prompt("82", ("one", "two"), "writing"),
        Prompt("b", ("three",), None, 5),
        Prompt("3", ("four ü",)),
        Prompt("4", ("v",), history=HISTORY),
    ]


def test_the_first_turn_is_the_default(path):
    path.write_bytes(content(LINES))
    assert load(path)[0].turns == ("one",)


def test_blank_lines_windows_ends_bom_and_gzip(path):
    raw = b"\xef\xbb\xbf\r\n" + content(LINES[1:3]).replace(b"\n", b"\r\n\r\n") + b"\r\n"
    path.write_bytes(raw)
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(raw))
    assert [p.id for p in load(path)] == ["b", "4"]
    assert load(packed) == load(path)


def test_a_line_separator_inside_a_text_ends_no_line(path):
    path.write_text('{"prompt": "a\u2028b"}', encoding="utf-8")
    assert load(path)[0].turns == ("a\u2028b",)


def test_limit_takes_the_first_and_looks_no_further(path):
    path.write_bytes(content(LINES) + b"\n{broken")
    assert [p.id for p in load(path, limit=2)] == ["82", "b"]
    assert len(load(path, limit=4)) == 4


GOOD = b'{"prompt": "x"}\n'
BAD = {
    "empty": (b"", "has no prompts"),
    "blank": (b"\n \n", "has no prompts"),
    "latin-1": (GOOD + 'ü"'.encode("latin-1"), "line 2 is not UTF-8"),
    "malformed": (GOOD + b'{"prompt": "x"', r"line 2 is malformed JSON \(Expecting"),
    "deep": (b"[" * 100_000, "line 1 is malformed JSON"),
    "no object": (GOOD * 2 + b'"x"', "line 3 is no JSON object"),
    "no usable key": (b'{"text": "x", "label": 1}', "line 1 has text, label, but no turns"),
    "no text": (b'{"prompt": 5}', "line 1: prompt must be non-empty text"),
    "empty text": (b'{"prompt": ""}', "line 1: prompt must be non-empty text"),
    "no turns": (b'{"turns": []}', "line 1: turns must be non-empty text"),
    "bad turn": (b'{"turns": ["x", null]}', "line 1: turns must be non-empty text"),
    "bad messages": (b'{"messages": "x"}', "line 1: messages has no message of the user"),
    "bad message": (b'{"messages": [{"role": "user"}]}', "line 1: messages must be a list"),
    "bad role": (b'{"messages": [{"role": "x", "content": "y"}]}', "messages must be a list"),
    "bad length": (b'{"prompt": "x", "max_new_tokens": 0}', "line 1: max_new_tokens must be"),
    "true length": (b'{"prompt": "x", "max_new_tokens": true}', "max_new_tokens must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_explained_in_one_line(path, case):
    raw, message = BAD[case]
    path.write_bytes(raw)
    with pytest.raises(UserError, match=message) as caught:
        load(path)
    assert f"data.path={path}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(path, tmp_path):
    with pytest.raises(UserError, match=r"data\.path=.* does not exist"):
        load(path)
    with pytest.raises(UserError, match=r"data\.path=.* cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(UserError, match=r"needs data\.path"):
        Jsonl(Jsonl.Config()).load()


def test_a_broken_gzip_file(tmp_path):
    packed = tmp_path / "x.jsonl.gz"
    for raw in (b"plain", gzip.compress(GOOD * 99)[:-9]):
        packed.write_bytes(raw)
        with pytest.raises(UserError, match="cannot be read"):
            load(packed)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"limit": 0}, "data.limit=0"), ({"limit": -1}, "limit=-1"), ({"turns": "2"}, "turns=2")],
)
def test_a_selection_of_nothing_is_refused(path, options, named):
    path.write_bytes(GOOD)
    with pytest.raises(UserError, match=named):
        load(path, **options)
