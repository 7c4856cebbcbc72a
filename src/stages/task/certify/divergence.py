"""Where two completions of one prompt part."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Completion, Request


@dataclass(frozen=True)
class Divergence:
    """The first difference: after `at` common tokens came `ours` and `plain` (None: nothing)."""

    request: Request
    common: tuple[int, ...]
    ours: int | None
    plain: int | None

    @property
    def at(self) -> int:
        """How many tokens are equal."""
        return len(self.common)

    @property
    def place(self) -> tuple[int, ...]:
        """The prompt's and the common tokens."""
        return (*self.request.token_ids, *self.common)


def divergences(ours: Generation, plain: Generation) -> list[Divergence]:
    """The completions that differ, in order; both have the same requests."""
    pairs = zip(ours.completions, plain.completions, strict=True)
    found = [first_difference(mine, other) for mine, other in pairs]
    return [divergence for divergence in found if divergence is not None]


def first_difference(ours: Completion, plain: Completion) -> Divergence | None:
    """None if the tokens are equal."""
    assert ours.request == plain.request
    if ours.token_ids == plain.token_ids:
        return None
    pairs = zip(ours.token_ids, plain.token_ids, strict=False)
    common = tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    at = len(common)
    return Divergence(ours.request, common, _token(ours.token_ids, at), _token(plain.token_ids, at))


def _token(tokens: Sequence[int], at: int) -> int | None:
    return tokens[at] if at < len(tokens) else None
