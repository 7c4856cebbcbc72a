"""How much of a comparison fits into a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from draftmesh.registry.contracts.request import Request

FEWEST_PROMPTS, FEWEST_TOKENS = 4, 8


@dataclass(frozen=True)
class Pace:
    """Seconds per token of a prompt, and per new token."""

    read: float
    write: float

    def cost(self, requests: Sequence[Request]) -> list[float]:
        """Seconds of each request."""
        return [self.read * len(r.token_ids) + self.write * r.max_new_tokens for r in requests]


@dataclass(frozen=True)
class Sized:
    """The requests to run, and a note if they are fewer or shorter than asked for."""

    requests: list[Request]
    note: str | None = None


def fit_requests(requests: Sequence[Request], pace: Pace, seconds: float) -> Sized:
    """Requests that take about `seconds` together: fewer prompts first, then shorter ones."""
    running = list(accumulate(pace.cost(requests)))
    if running[-1] <= seconds:
        return Sized(list(requests))
    fitting = sum(end <= seconds for end in running)
    count = min(len(requests), max(fitting, FEWEST_PROMPTS))
    kept = list(requests[:count])
    note = f"{count} of {len(requests)} prompts"
    if fitting < count:
        reading = pace.read * sum(len(r.token_ids) for r in kept)
        longest = max(FEWEST_TOKENS, int((seconds - reading) / (pace.write * count)))
        kept = [replace(r, max_new_tokens=min(r.max_new_tokens, longest)) for r in kept]
        note += f", at most {longest} tokens each"
    return Sized(kept, note)
