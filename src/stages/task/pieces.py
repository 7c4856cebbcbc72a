"""Tokens as the pieces of text that they add."""

from collections.abc import Sequence
from typing import Any

from draftmesh.registry.contracts.request import Completion

_UNFINISHED = "\ufffd"
_CONTEXT = 4


def token_pieces(tokenizer: Any, token_ids: Sequence[int]) -> list[str]:
    """One piece per token; joined they are the text, special tokens included.

    A character spread over several tokens belongs to the last of them; the others are empty. A
    token's text can depend on the ones before it (a leading space), so it is decoded behind a few.
    """
    pieces: list[str] = []
    start = done = 0
    for end in range(1, len(token_ids) + 1):
        before = tokenizer.decode(token_ids[start:done]) if done > start else ""
        whole = tokenizer.decode(token_ids[start:end])
        if whole.endswith(_UNFINISHED) and end < len(token_ids):
            pieces.append("")
            continue
        pieces.append(whole[len(before) :])
        done = end
        start = max(start, done - _CONTEXT)
    return pieces


def completion_pieces(tokenizer: Any, completions: Sequence[Completion]) -> list[list[str]]:
    """The pieces of each completion."""
    return [token_pieces(tokenizer, completion.token_ids) for completion in completions]
