"""How much of a comparison fits into a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from draftmesh.registry.contracts.request import Request

FEWEST_PROMPTS, FEWEST_TOKENS = 4, 8


@dataclass(frozen=True)
class Sized:
    """The requests to run, and a note if they are fewer or shorter than asked for."""

    requests: list[Request]
    note: str | None = None


def fit_requests(requests: Sequence[Request], tokens: float) -> Sized:
    """Requests of at most `tokens` new tokens together: fewer prompts first, then shorter ones."""
    wanted = sum(r.max_new_tokens for r in requests)
    if wanted <= tokens:
        return Sized(list(requests))
    count = int(len(requests) * tokens / wanted)
    count = min(len(requests), max(count, FEWEST_PROMPTS))
    longest = max(FEWEST_TOKENS, int(tokens / count))
    kept = [replace(r, max_new_tokens=min(r.max_new_tokens, longest)) for r in requests[:count]]
    note = f"{count} of {len(requests)} prompts"
    if any(k.max_new_tokens < r.max_new_tokens for k, r in zip(kept, requests, strict=False)):
        note += f", at most {longest} tokens each"
    return Sized(kept, note)
