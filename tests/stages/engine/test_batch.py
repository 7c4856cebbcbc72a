"""Blocks of every kind of acceptance against decoding one token at a time."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
import torch
from harness import PROMPTS, generate, own_attention, requests, run_engine, tiny, tokens, with_eos
from hypothesis import given, settings
from hypothesis import strategies as st
from known_draft import CHAIN, TREE, KnownDraft

from draftmesh.registry.contracts.draft import Proposal

NEW = 13
SAMPLING = {"temperature": 0.8, "top_p": 0.9, "repetition_penalty": 1.2}


def scripted(known, hits, parents=CHAIN):
    return lambda context: KnownDraft(context, known, hits, parents)


@cache
def endless(sampled=False):
    """A model without EOS, and its plain completions, longer than asked for."""
    setup = with_eos(tiny("llama"))
    options = SAMPLING if sampled else None
    return setup, tokens(run_engine(setup, requests(max_new_tokens=NEW + 8), sampling=options))


@pytest.mark.parametrize("parents", [CHAIN, TREE, (-1, -1, -1), (-1,)])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 5])
def test_zero_partial_and_full_acceptance_give_plain_tokens(parents, sampled, batch_size):
    setup, known = endless(sampled)
    hits = (0, 2, len(parents), 1)
    result = run_engine(
        setup,
        requests(max_new_tokens=NEW),
        scripted(known, hits, parents),
        sampling=SAMPLING if sampled else None,
        batch_size=batch_size,
    )
    assert tokens(result) == [line[:NEW] for line in known]
    histogram = result.counters.histogram
    assert histogram[0]
    assert histogram[max(histogram)]
    assert all(c.finish_reason == "length" for c in result.completions)


def test_plain_tokens_are_those_of_transformers():
    setup, known = endless()
    assert known == [generate(setup, prompt, NEW + 8) for prompt in PROMPTS]


@pytest.mark.parametrize("limit", range(1, 9))
@pytest.mark.parametrize("verifier", ["match", "ratio", "block"])
def test_exactly_as_many_tokens_as_asked_for(limit, verifier):
    setup, known = endless()
    result = run_engine(
        setup, requests(max_new_tokens=limit), scripted(known, (4, 1)), verifier, batch_size=5
    )
    assert tokens(result) == [line[:limit] for line in known]


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_step_holds_the_root_and_its_features_when_nothing_was_drafted(batch_size):
    setup, known = endless()

    class Silent(KnownDraft):
        capture = (setup.target.num_layers,)

        def observe(self, step):
            assert int(step.lengths.max()) <= step.tokens.shape[1]
            seen = step.features[setup.target.num_layers].gather(
                1, (step.lengths - 1)[:, None, None].expand(-1, 1, setup.target.hidden_size)
            )
            chosen = setup.target.lm_head(seen)[:, 0].argmax(-1)
            assert torch.equal(chosen, step.next)
            steps.append(step)
            super().observe(step)

        def propose(self, budget):
            # In turn a whole tree, and no node at all.
            silent = len(steps) % 2
            proposal = super().propose(budget)
            return Proposal.empty(len(budget), budget.device) if silent else proposal

    steps = []
    result = run_engine(
        setup,
        requests(max_new_tokens=NEW),
        lambda context: Silent(context, known, (4, 2), CHAIN),
        batch_size=batch_size,
    )
    assert tokens(result) == [line[:NEW] for line in known]
    assert {step.tokens.shape[1] for step in steps} > {1, 5}


def test_no_draft_is_longer_than_what_may_still_be_emitted():
    setup, known = endless()
    made = []

    def build(context):
        made.append(KnownDraft(context, known, (0,)))
        return made[0]

    run_engine(setup, requests(PROMPTS[:1], max_new_tokens=7), build)
    assert made[0].budgets == [[4], [4], [3], [2], [1], [0]]


def test_requests_of_different_lengths_end_one_by_one():
    setup, known = endless()
    asked = [
        replace(r, max_new_tokens=n) for r, n in zip(requests(), (13, 1, 6, 2, 9), strict=True)
    ]
    finished = []
    result = run_engine(
        setup,
        asked,
        scripted(known, (0, 3, 1)),
        batch_size=4,
        on_finish=lambda completion: finished.append(completion.request.index),
    )
    wanted = [line[: r.max_new_tokens] for line, r in zip(known, asked, strict=True)]
    assert tokens(result) == wanted
    assert [c.request.index for c in result.completions] == [0, 1, 2, 3, 4]
    assert finished[:2] == [1, 3]
    assert finished[-1] == 4  # the second batch
    assert sorted(finished) == [0, 1, 2, 3, 4]


@settings(max_examples=40)
@given(st.data())
def test_ends_are_where_decoding_token_by_token_ends(data):
    """EOS ids at any place of a block, several of them, in any batch."""
    setup, known = endless()
    ids = sorted({token for line in known for token in line[:NEW]})
    eos = data.draw(st.sets(st.sampled_from(ids), max_size=3))
    hits = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    result = run_engine(
        with_eos(setup, *eos),
        requests(max_new_tokens=NEW),
        scripted(known, hits, data.draw(st.sampled_from([CHAIN, TREE]))),
        batch_size=data.draw(st.sampled_from([1, 2, 5])),
    )
    for completion, line in zip(result.completions, known, strict=True):
        first = next((i for i, token in enumerate(line[:NEW]) if token in eos), None)
        stop = NEW if first is None else first + 1
        assert completion.token_ids == line[:stop]
        assert completion.finish_reason == ("length" if first is None else "stop")
        assert sum(completion.accept_lengths) == len(completion.token_ids)
        assert len(completion.drafted) == len(completion.token_ids)
    marked = sum(sum(completion.drafted) for completion in result.completions)
    assert marked == result.counters.accepted


@pytest.mark.parametrize(
    ("place", "accepted"),
    [
        (0, []),  # the very first token
        (1, [1]),  # the first drafted token
        (3, [3]),  # inside the block
        (4, [4]),  # the last drafted token
        (5, [4]),  # the bonus token
        (6, [4, 1]),
    ],
)
def test_eos_at_each_place_of_a_block(place, accepted):
    setup = with_eos(tiny("llama"))
    prompt = (21, 4, 60)
    (line,) = tokens(run_engine(setup, requests([prompt], max_new_tokens=20)))
    assert line.index(line[place]) == place, "another prompt is needed"
    result = run_engine(
        with_eos(setup, 94, line[place]),
        requests([prompt], max_new_tokens=20),
        scripted([line], (4,)),
    )
    (completion,) = result.completions
    assert completion.token_ids == line[: place + 1]
    assert completion.finish_reason == "stop"
    assert [sum(block) for block in blocks(completion)] == accepted
    assert result.counters.histogram == Counter(accepted)
    assert result.counters.first_rejections == 0


def blocks(completion):
    """The drafted marks of each step after the prefill."""
    found, at = [], completion.accept_lengths[0]
    for count in completion.accept_lengths[1:]:
        found.append(completion.drafted[at : at + count])
        at += count
    return found


def test_counters_by_hand():
    setup, known = endless()
    result = run_engine(setup, requests(PROMPTS[:1], max_new_tokens=10), scripted(known, (0, 2, 4)))
    (completion,) = result.completions
    assert completion.accept_lengths == [1, 1, 3, 5]
    assert completion.drafted == [False] * 2 + [True] * 2 + [False] + [True] * 4 + [False]
    counters = result.counters
    assert (counters.prefills, counters.prefill_tokens) == (1, 6)
    assert (counters.steps, counters.rounds, counters.target_forwards) == (3, 3, 4)
    assert (counters.drafted, counters.accepted, counters.emitted) == (12, 6, 9)
    assert counters.histogram == Counter({0: 1, 2: 1, 4: 1})
    assert counters.offered_at == Counter({0: 3, 1: 2, 2: 2, 3: 1})
    assert counters.accepted_at == Counter({0: 2, 1: 2, 2: 1, 3: 1})
    assert counters.first_rejections == 2


def test_counters_of_a_tree_in_a_batch_by_hand():
    """The tree's right path is -1, 1, 3, 5: the hits end above, at, and below its forks."""
    setup, known = endless()
    result = run_engine(
        setup, requests(PROMPTS[:2], max_new_tokens=8), scripted(known, (1, 3), TREE), batch_size=2
    )
    # 1 token from the prefill, then 2, 4 and, with one token left, 1 without a draft.
    assert [c.accept_lengths for c in result.completions] == [[1, 2, 4, 1]] * 2
    counters = result.counters
    assert (counters.prefills, counters.prefill_tokens) == (2, 7)
    assert (counters.steps, counters.rounds, counters.target_forwards) == (6, 3, 4)
    assert counters.drafted == 2 * (6 + 6 + 0)
    assert (counters.accepted, counters.emitted) == (2 * 4, 2 * 7)
    assert counters.histogram == Counter({1: 2, 3: 2, 0: 2})
    assert counters.offered_at == Counter({0: 4, 1: 4, 2: 2})
    assert counters.accepted_at == Counter({0: 4, 1: 2, 2: 2})
    assert counters.first_rejections == 2


def test_times_add_up():
    setup, known = endless()
    result = run_engine(setup, requests(), scripted(known, (2,)), batch_size=5)
    counters = result.counters
    assert counters.wall_s == pytest.approx(result.seconds)
    assert min(counters.draft_s, counters.verify_s, counters.prefill_s, counters.overhead_s) > 0
    for completion in result.completions:
        assert 0 < completion.ttft_s < completion.latency_s <= result.seconds


class Listener(KnownDraft):
    """Writes down what it is told, by request."""

    capture = (1, 3)

    def start(self, rows):
        super().start(rows)
        self.heard = {request.index: [] for request in rows.requests}
        Listener.last = self

    def observe(self, step):
        super().observe(step)
        for row, (index, *_) in enumerate(self.rows):
            count = int(step.lengths[row])
            self.heard[index].append(
                (
                    step.tokens[row, :count].tolist(),
                    step.positions[row, :count].tolist(),
                    {layer: found[row, :count] for layer, found in step.features.items()},
                    int(step.next[row]),
                )
            )


@pytest.mark.parametrize("parents", [CHAIN, TREE])
def test_a_draft_is_told_what_the_target_has_seen(parents):
    """Tokens, positions and hidden states of accepted paths, with rows that end early."""
    setup, known = endless()
    asked = [
        replace(r, max_new_tokens=n) for r, n in zip(requests(), (13, 5, 9, 12, 7), strict=True)
    ]
    run_engine(
        setup,
        asked,
        lambda context: Listener(context, known, (2, 0, 4, 3), parents),
        batch_size=5,
    )
    for request, steps in zip(asked, Listener.last.heard.values(), strict=True):
        line = [token for tokens_seen, *_ in steps for token in tokens_seen]
        assert line == [*request.token_ids, *known[request.index]][: len(line)]
        assert [p for _, positions, *_ in steps for p in positions] == list(range(len(line)))
        assert len(steps) > 1
        for (_, _, _, following), (tokens_seen, *_) in pairwise(steps):
            assert following == tokens_seen[0]
        states = hidden_states(setup.checkpoint.model, line)
        for layer in (1, 3):
            told = torch.cat([features[layer] for _, _, features, _ in steps])
            assert torch.allclose(told, states[layer], atol=1e-9)


@torch.inference_mode()
def hidden_states(model, line):
    with own_attention(model):
        output = model(torch.tensor([line]), output_hidden_states=True, use_cache=False)
    return [state[0] for state in output.hidden_states]
