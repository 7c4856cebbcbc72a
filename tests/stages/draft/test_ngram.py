import pytest
import torch
from harness import requests, run_engine, tiny, with_eos
from hypothesis import given
from hypothesis import strategies as st

from draftmesh.registry import UserError
from draftmesh.registry.contracts.draft import Rows, Step
from draftmesh.stages.draft.ngram import NGramDraft, NGramIndex


def slow_lookup(tokens, shortest, longest, count):
    """What followed the last occurrence of the longest n-gram at the end, going on with itself."""
    for n in range(min(longest, len(tokens)), shortest - 1, -1):
        for end in range(len(tokens) - 1, n - 1, -1):
            if tokens[end - n : end] == tokens[-n:]:
                grown = list(tokens)
                for i in range(count):
                    grown.append(grown[end + i])
                return grown[len(tokens) :]
    return []


@given(
    st.lists(st.integers(1, 3), max_size=30),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(1, 8),
    st.integers(0, 30),
)
def test_lookup(tokens, shortest, more, count, cut):
    index = NGramIndex(shortest, shortest + more)
    index.extend(tokens[:cut])
    index.extend(tokens[cut:])
    assert index.lookup(count) == slow_lookup(tokens, shortest, shortest + more, count)


def draft(**options):
    class Context:
        target = tiny("llama").target

    return NGramDraft(NGramDraft.Config(**options), Context())


def step(lines, lengths, following):
    nothing = torch.zeros(len(lines), len(lines[0]), dtype=torch.long)
    return Step(torch.tensor(lines), torch.tensor(lengths), nothing, {}, torch.tensor(following))


def test_rows_propose_for_themselves_within_their_budget():
    ngram = draft(k=4, min_match=1)
    ngram.start(Rows(tuple(requests()[:3]), None, 50, None))
    ngram.observe(step([[5, 6, 7, 5], [1, 2, 3, 9], [8, 8, 0, 0]], [4, 4, 2], [6, 4, 8]))
    proposal = ngram.propose(torch.tensor([3, 4, 2]))
    assert proposal.valid.tolist() == [[True] * 3, [False] * 3, [True, True, False]]
    assert proposal.tokens[0].tolist() == [7, 5, 6]
    assert proposal.tokens[2, :2].tolist() == [8, 8]
    assert proposal.q is None
    ngram.observe(step([[6, 7, 5], [4, 0, 0], [8, 8, 8]], [3, 1, 2], [1, 9, 3]))
    ngram.drop(torch.tensor([2, 1]))
    # Row 2 was 8 8 8 8 3, row 1 1 2 3 9 4 9: only the 9 has been there.
    proposal = ngram.propose(torch.tensor([2, 2]))
    assert proposal.valid.tolist() == [[False, False], [True, True]]
    assert proposal.tokens[1].tolist() == [4, 9]


def test_nothing_found_is_an_empty_proposal():
    ngram = draft()
    ngram.start(Rows(tuple(requests()[:1]), None, 50, None))
    ngram.observe(step([[1, 2, 3]], [3], [4]))
    assert ngram.propose(torch.tensor([3])).size == 0


def test_a_text_that_repeats_itself_is_copied():
    setup = with_eos(tiny("mixtral"))
    asked = requests([(7, 8) * 6], max_new_tokens=20)
    result = run_engine(setup, asked, {"name": "ngram", "k": 5})
    assert result.counters.accepted > 5


@pytest.mark.parametrize("options", [{"min_match": 0}, {"min_match": 5, "max_match": 4}])
def test_impossible_matches(options):
    with pytest.raises(UserError, match=r"draft\.min_match"):
        NGramDraft.Config(**options)


def test_one_rank_has_no_collectives():
    ngram = draft()
    assert ngram.target_forwards == 0
    ngram.idle()
