"""The default model in float64: drafts change nothing but the speed."""

from functools import cache
from typing import Any

import pytest
import torch
from harness import Setup, own_attention, run_engine, tokens

from draftmesh.registry.contracts.request import Request
from draftmesh.stages.data.encode import encode_turns

pytestmark = pytest.mark.real

NEW, BATCH = 24, 8
PROMPTS = (
    "What is the capital of France?",
    "Count from 1 to 10.",
    "Say 'yes' and nothing else.",
    "Repeat: the cat sat on the mat, the cat sat on the mat.",
    "Write a haiku about autumn rain.",
    "List three colours of the rainbow.",
    "Translate 'good morning' into Spanish.",
    "Copy: apple, pear, plum, apple, pear, plum.",
    "Explain in one sentence why the sky is blue.",
    "What is 12 plus 30?",
    "Name the largest planet of the solar system.",
    "Give me a recipe for pancakes, step by step.",
    "def add(a, b): return a + b\nNow subtraction.",
    "Summarise: The train was late. People waited in the rain.",
    "Who wrote Romeo and Juliet?",
    "Hi",
    "Which animals lay eggs? Answer with a list.",
    "Finish the sentence: The quick brown fox",
    "Write the days of the week, separated by commas.",
    "A farmer has seven sheep and buys five. How many now?",
)
NUCLEUS = {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.1}
SELF = {"name": "self", "k": 2, "skip_layers": list(range(8, 24, 2))}
EXIT = {"name": "self", "k": 2, "exit_layer": 27}
NGRAM = {"name": "ngram", "k": 4}


def asked(setup: Setup, which: slice = slice(None)) -> list[Request]:
    made = []
    for index, prompt in enumerate(PROMPTS):
        ids = encode_turns(setup.checkpoint, [prompt], setup.target.context, str(index))
        made.append(Request(str(index), prompt, tuple(ids), index, 3, NEW))
    return made[which]


@cache
def greedy(setup: Setup) -> list[list[int]]:
    """transformers' own `generate`, all prompts in one left-padded batch."""
    lines = [request.token_ids for request in asked(setup)]
    width, eos = max(map(len, lines)), setup.checkpoint.eos_ids
    ids = torch.tensor([[eos[0]] * (width - len(line)) + list(line) for line in lines])
    mask = torch.tensor([[0] * (width - len(line)) + [1] * len(line) for line in lines])
    with own_attention(setup.checkpoint.model), torch.inference_mode():
        out = setup.checkpoint.model.generate(
            ids, attention_mask=mask, do_sample=False, max_new_tokens=NEW, pad_token_id=eos[0]
        )
    found: list[list[int]] = out[:, width:].tolist()
    ends = [next((i + 1 for i, t in enumerate(line) if t in eos), NEW) for line in found]
    return [line[:end] for line, end in zip(found, ends, strict=True)]


def drafts(smaller: str) -> dict[str, dict[str, Any]]:
    return {
        "none": {"name": "none"},
        "ngram": NGRAM,
        "self": SELF,
        "small": {"name": "small", "path": smaller, "k": 2},
    }


@pytest.mark.parametrize("draft", ["none", "ngram", "self", "small"])
def test_greedy_batches_give_the_tokens_of_transformers(smollm2, smaller, draft):
    result = run_engine(smollm2, asked(smollm2), drafts(smaller)[draft], batch_size=BATCH)
    assert tokens(result) == greedy(smollm2)
    assert (result.counters.accepted > 0) == (draft != "none")
    report(result, draft)


def test_they_speak_english(smollm2):
    text = smollm2.checkpoint.tokenizer.decode(greedy(smollm2)[0])
    assert "Paris" in text


@pytest.mark.parametrize("draft", ["ngram", "self", "small"])
def test_one_prompt_at_a_time_too(smollm2, smaller, draft):
    result = run_engine(smollm2, asked(smollm2, slice(1, 4)), drafts(smaller)[draft])
    assert tokens(result) == greedy(smollm2)[1:4]
    assert result.counters.accepted > 0


@pytest.mark.parametrize("draft", [EXIT, {**SELF, "shape": "dynamic", "nodes": 8}])
def test_early_exit_and_a_tree(smollm2, draft):
    result = run_engine(smollm2, asked(smollm2, slice(3, 4)), draft)
    assert tokens(result) == greedy(smollm2)[3:4]
    assert result.counters.accepted > 0


@pytest.mark.parametrize(
    "draft",
    [
        {"name": "eagle", "k": 3},
        {"name": "eagle", "path": "smollm2-eagle1", "k": 2},
        {"name": "medusa", "nodes": 8},
        {"name": "small", "k": 3},
    ],
    ids=str,
)
def test_the_shipped_heads_change_nothing(smollm2, draft):
    result = run_engine(smollm2, asked(smollm2, slice(2, 5)), draft, batch_size=3)
    assert tokens(result) == greedy(smollm2)[2:5]
    assert result.counters.accepted > 0
    report(result, str(draft))


def test_sampled_tokens_are_those_of_plain_decoding_at_the_same_seed(smollm2):
    some = asked(smollm2, slice(0, 4))
    plain = run_engine(smollm2, some, sampling=NUCLEUS, batch_size=4)
    assert tokens(plain) != greedy(smollm2)[:4]
    result = run_engine(smollm2, some, SELF, "match", NUCLEUS, batch_size=3)
    assert tokens(result) == tokens(plain)
    assert result.counters.accepted > 0
    report(result, "self, sampled")


def report(result: Any, name: str) -> None:
    """Where the time went, for whoever reads the output (pytest -s)."""
    counters = result.counters
    step = counters.verify_s / counters.rounds
    overhead = counters.overhead_s / counters.rounds
    print(
        f"\n{name}: {counters.rounds} rounds, {1e3 * step:.0f} ms to verify, "
        f"{1e3 * counters.draft_s / counters.rounds:.0f} ms to draft, overhead "
        f"{1e3 * overhead:.1f} ms ({overhead / step:.1%}), "
        f"{counters.accepted} of {counters.drafted} drafted tokens accepted"
    )
