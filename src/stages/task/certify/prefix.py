"""The forced prefix after which many completions are drawn."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Request

WINDOW = 6
PROMPTS = 3
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
        for end in (len(tokens) // 2, len(tokens)):
            piece = tokens[max(0, end - WINDOW) : end]
            if len(piece) > 1:
                found[piece] = None
    other = next(i for i in range(len(ends) + 1) if i not in ends)
    return list(found) or [(other, other)]


def prefix(tokens: Sequence[int]) -> Prefix:
    """The last token is the forced one."""
    return Prefix(tuple(tokens[:-1]), tokens[-1])


def interest(trial: Generation) -> float:
    """How well draws after a prefix would test a draft, larger is better: the first token varies,
    and the drafted one is sometimes accepted and sometimes not (or there at least)."""
    counters = trial.counters
    accepted = counters.accepted_at[0] / max(counters.offered_at[0], 1)
    tested = accepted * (1 - accepted) + 0.01 * (counters.drafted > 0) + 0.001
    firsts = Counter(tuple(c.token_ids[1:2]) for c in trial.completions)
    repeated = sum((n / len(trial.completions)) ** 2 for n in firsts.values())
    return (1 - repeated) * tested
