"""The forced prefix after which many completions are drawn."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry.contracts.request import Request

WINDOW = 6
PROMPTS = 3
PIECES = 4
"""Of each prompt."""
LONGEST = 2 * WINDOW + 1
"""A piece, a token, and the piece again."""


@dataclass(frozen=True)
class Prefix:
    """A prompt and the first token after it, which is forced."""

    prompt: tuple[int, ...]
    forced: int

    @property
    def tokens(self) -> tuple[int, ...]:
        """All of it."""
        return (*self.prompt, self.forced)

    def requests(self, numbers: range, seed: int, new_tokens: int) -> list[Request]:
        """Requests that differ only in their number, that is in their noise."""
        return [Request(f"draw-{i}", "", self.prompt, i, seed, new_tokens) for i in numbers]


def pieces(requests: Sequence[Request], ends: Collection[int]) -> list[tuple[int, ...]]:
    """Short pieces of the first prompts, of at least two tokens each. `ends` are tokens that end a
    completion, which can't be forced; they are left out."""
    found: dict[tuple[int, ...], None] = {}
    for request in requests[:PROMPTS]:
        tokens = tuple(t for t in request.token_ids if t not in ends)
        for part in range(1, PIECES + 1):
            end = len(tokens) * part // PIECES
            piece = tokens[max(0, end - WINDOW) : end]
            if len(piece) > 1:
                found[piece] = None
    other = next(i for i in range(len(ends) + 1) if i not in ends)
    return list(found) or [(other, other)]


def prefix(tokens: Sequence[int]) -> Prefix:
    """The last token is the forced one."""
    return Prefix(tuple(tokens[:-1]), tokens[-1])


def interest(target: Tensor, draft: Tensor | None) -> float:
    """How well draws after a prefix would test a draft, larger is better: the target's token
    varies, and the draft's is sometimes accepted and sometimes not (or there at least).

    target, draft [V]: their distributions there; no draft where it proposes nothing.
    """
    accepted = 0.0 if draft is None else float(torch.minimum(target, draft).sum())
    tested = accepted * (1 - accepted) + (0 if draft is None else 1e-3) + 1e-4
    return float(1 - target.square().sum()) * tested
