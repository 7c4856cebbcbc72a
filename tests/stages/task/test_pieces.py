from collections.abc import Sequence

import pytest

from draftmesh.stages.task.pieces import token_pieces


class ByteTokenizer:
    """One token per UTF-8 byte; like SentencePiece, it drops a leading space of what it decodes."""

    def __init__(self, strip: bool) -> None:
        self.strip = strip

    def decode(self, token_ids: Sequence[int]) -> str:
        text = bytes(token_ids).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.strip else text


@pytest.mark.parametrize("text", ["plain words here", "naïve 日本 🦊!", "", "ends in 🦊"])
def test_pieces_join_to_the_text(text: str) -> None:
    ids = list(text.encode())
    pieces = token_pieces(ByteTokenizer(strip=False), ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == text


def test_a_character_belongs_to_its_last_token() -> None:
    assert token_pieces(ByteTokenizer(strip=False), list("aé".encode())) == ["a", "", "é"]


def test_spaces_between_tokens_are_kept() -> None:
    ids = list(b"a b c d e f")
    assert "".join(token_pieces(ByteTokenizer(strip=True), ids)) == "a b c d e f"


def test_an_unfinished_character_at_the_end_is_shown() -> None:
    assert token_pieces(ByteTokenizer(strip=False), list("é".encode())[:1]) == ["\ufffd"]
