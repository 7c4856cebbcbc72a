from collections import Counter
from collections.abc import Callable

import pytest

from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.result import RunResult

MakeCompletion = Callable[..., Completion]


@pytest.fixture
def make_completion() -> MakeCompletion:
    """A completion with the given accept lengths: all but the last token of a step were drafted."""

    def make(
        accept_lengths: list[int], name: str = "q", ttft: float = 0.1, latency: float = 0.5
    ) -> Completion:
        request = Request(name, "Why?", (1, 2, 3), sum(map(ord, name)), 0, 64)
        marks = [i < n - 1 for n in accept_lengths for i in range(n)]
        ids = list(range(100, 100 + len(marks)))
        text = " ".join(map(str, ids))
        return Completion(request, ids, marks, accept_lengths, text, "length", ttft, latency)

    return make


@pytest.fixture
def counters() -> Counters:
    """Chains of 4 in 10 steps: 4 accept nothing, 3 one, 2 two and 1 all four tokens."""
    return Counters(
        steps=10,
        rounds=10,
        drafted=40,
        accepted=11,
        emitted=21,
        target_forwards=12,
        histogram=Counter({0: 4, 1: 3, 2: 2, 4: 1}),
        offered_at=Counter({0: 10, 1: 6, 2: 3, 3: 1}),
        accepted_at=Counter({0: 6, 1: 3, 2: 1, 3: 1}),
        draft_s=0.2,
        verify_s=0.5,
        prefill_s=0.25,
        overhead_s=0.05,
    )


@pytest.fixture
def result(make_completion: MakeCompletion, counters: Counters) -> RunResult:
    """Two completions and plain decoding of the same."""
    done = [make_completion([1, 2, 5, 1], "a"), make_completion([1, 1, 3], "b")]
    plain = [make_completion([1] * 9, "a"), make_completion([1] * 5, "b")]
    plain_counters = Counters(
        steps=12, rounds=12, verify_s=0.48, prefill_s=0.25, overhead_s=0.07, target_forwards=14
    )
    pieces = [[f" {i}" for i in c.token_ids] for c in done]
    return RunResult(
        Generation(done, counters, counters.wall_s),
        Generation(plain, plain_counters, plain_counters.wall_s),
        comparable=True,
        pieces=pieces,
    )
