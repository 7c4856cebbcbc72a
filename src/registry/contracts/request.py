"""One prompt going in and its completion coming out."""

from dataclasses import dataclass, field
from typing import Literal

FinishReason = Literal["stop", "length", "stop_string"]


@dataclass(frozen=True)
class Request:
    """A prompt to complete.

    `index` is the request's number in the run: with `seed` and the position it keys every random
    draw, so a request's tokens do not depend on what else is in its batch. `later` are the user's
    turns after this one, `history` the (role, content) messages before it; later turns have the
    same index.
    """

    id: str
    prompt: str
    token_ids: tuple[int, ...]
    index: int
    seed: int
    max_new_tokens: int
    stop: tuple[str, ...] = ()
    category: str | None = None
    turn: int = 0
    later: tuple[str, ...] = ()
    history: tuple[tuple[str, str], ...] = ()


@dataclass
class Completion:
    """What a request became.

    `accept_lengths` holds the tokens emitted per target step (bonus included, the prefill step
    first), after truncation; `drafted` marks, per token of `token_ids`, whether a draft proposed
    it. `ttft_s` and `latency_s` are seconds from the start of the request's batch.
    """

    request: Request
    token_ids: list[int] = field(default_factory=list)
    drafted: list[bool] = field(default_factory=list)
    accept_lengths: list[int] = field(default_factory=list)
    text: str = ""
    finish_reason: FinishReason = "length"
    ttft_s: float = 0.0
    latency_s: float = 0.0
