"""When a sequence ends: an EOS id, or a stop string (the earliest one)."""

from collections.abc import Sequence
from typing import Any

from draftmesh.registry.contracts.request import FinishReason


class Stopper:
    """Looks at a sequence after every single token, so that a block of accepted tokens ends exactly
    where decoding one token at a time would have ended."""

    def __init__(self, tokenizer: Any, eos_ids: Sequence[int], stop: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.eos_ids = frozenset(eos_ids)
        self.stop = tuple(stop)
        # A character takes at most four byte-level tokens.
        self.tail = 4 * max((len(s) for s in stop), default=0) + 8

    def check(self, token_ids: list[int]) -> FinishReason | None:
        """The reason to end after these tokens, if any."""
        if token_ids[-1] in self.eos_ids:
            return "stop"
        if self.stop and self._found(self._decode(token_ids[-self.tail :])) is not None:
            return "stop_string"
        return None

    def text(self, token_ids: list[int]) -> str:
        """The text, without special tokens, cut before the earliest stop string."""
        if self.tokenizer is None:
            return ""
        text = self._decode(token_ids)
        at = self._found(text)
        return text if at is None else text[:at]

    def _decode(self, token_ids: list[int]) -> str:
        text: str = self.tokenizer.decode(token_ids, skip_special_tokens=True)
        return text

    def _found(self, text: str) -> int | None:
        places = [at for at in map(text.find, self.stop) if at >= 0]
        return min(places, default=None)
