import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "draftmesh-lookahead"


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from draftmesh_lookahead import pool

    yield pool
    for name in [n for n in sys.modules if n.partition(".")[0] == "draftmesh_lookahead"]:
        del sys.modules[name]


def continuations(pool, tokens, k=3, branches=2, window=8):
    ngrams = pool.NGramPool()
    ngrams.extend(tokens)
    return ngrams.continuations(k, branches, window)


def test_latest_first_and_each_once(pool):
    tokens = [1, 2, 3, 4, 1, 5, 6, 7, 1, 2, 3, 4, 1]
    assert continuations(pool, tokens) == [[2, 3, 4], [5, 6, 7]]
    assert continuations(pool, tokens, branches=1) == [[2, 3, 4]]
    assert continuations(pool, tokens, window=1) == [[2, 3, 4]]


def test_short_at_the_end_and_beginnings_left_out(pool):
    assert continuations(pool, [9, 9]) == [[9]]
    assert continuations(pool, [1, 2, 1, 2, 1], k=4) == [[2, 1], [2, 1, 2, 1]]
    assert continuations(pool, [1, 2, 3, 1, 2, 3, 1], k=2) == [[2, 3]]


def test_nothing_to_propose(pool):
    assert continuations(pool, []) == []
    assert continuations(pool, [1, 2, 3]) == []
    assert continuations(pool, [1, 1], k=0) == []


def test_merge_shares_beginnings(pool):
    assert pool.merge([[2, 1], [2, 1, 2], [5]]) == ([2, 1, 2, 5], [-1, 0, 1, -1])
    assert pool.merge([]) == ([], [])
