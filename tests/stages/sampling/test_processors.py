from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from draftmesh.registry import UserError
from draftmesh.registry.contracts.sampling import Distribution, History
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors

VOCAB = 40
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def logits(rows: int = 2, nodes: int = 6, vocab: int = VOCAB, seed: int = 0) -> Tensor:
    return torch.randn(rows, nodes, vocab, generator=torch.Generator().manual_seed(seed))


def history() -> History:
    """Two rows of different lengths, a tree of five nodes, small ids so that tokens repeat."""
    generator = torch.Generator().manual_seed(1)
    return History(
        torch.randint(0, 6, (2, 12), generator=generator),
        torch.tensor([12, 5]),
        torch.randint(0, 6, (2, 5), generator=generator),
        torch.tensor([[-1, 0, 0, 1, -1], [-1, -1, 1, 2, 3]]),
        torch.tensor([7, 5]),
    )


def processors(vocab: int = VOCAB, valid: int | None = None, **options: Any) -> Processors:
    return Processors(SamplingOptions(**options), vocab, valid)


def reference(past: History, scores: Tensor, options: dict[str, Any]) -> Tensor:
    """transformers' classes in transformers' order, node by node -> logits [B, N, V]."""
    chain = LogitsProcessorList()
    if options.get("logit_bias"):
        bias = {(token,): value for token, value in options["logit_bias"].items()}
        chain.append(SequenceBiasLogitsProcessor(bias))
    if "repetition_penalty" in options:
        chain.append(RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
    if "no_repeat_ngram" in options:
        chain.append(NoRepeatNGramLogitsProcessor(options["no_repeat_ngram"]))
    if options.get("temperature"):
        chain.append(TemperatureLogitsWarper(options["temperature"]))
    if "top_k" in options:
        chain.append(TopKLogitsWarper(options["top_k"]))
    if "top_p" in options:
        chain.append(TopPLogitsWarper(options["top_p"]))
    if "min_p" in options:
        chain.append(MinPLogitsWarper(options["min_p"]))
    lines = [
        [chain(past.path(b, n).unsqueeze(0), scores[b, n].unsqueeze(0))[0] for n in range(6)]
        for b in range(2)
    ]
    return torch.stack([torch.stack(line) for line in lines])


OPTIONS: list[dict[str, Any]] = [
    {"temperature": 1.0},
    {"temperature": 0.7, "top_p": 0.9},
    {"temperature": 1.3, "top_k": 5},
    {"temperature": 0.8, "top_k": 20, "top_p": 0.8, "min_p": 0.1},
    {"temperature": 1.0, "min_p": 0.2},
    {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.4},
    {"temperature": 1.0, "no_repeat_ngram": 2},
    {"temperature": 1.0, "no_repeat_ngram": 4, "top_k": 3},
    {"temperature": 0.9, "logit_bias": {3: 5.0, 7: float("-inf")}, "repetition_penalty": 0.8},
    {"repetition_penalty": 1.4, "no_repeat_ngram": 2, "logit_bias": {2: 9.0}},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("device", DEVICES)
def test_equal_to_transformers_at_every_node(
    options: dict[str, Any], dtype: torch.dtype, device: str
) -> None:
    scores, past = logits().to(dtype), history()
    fields = (past.tokens, past.lengths, past.node_tokens, past.parents, past.prompts)
    there = History(*(None if f is None else f.to(device) for f in fields))
    result = processors(**options)(scores.to(device), there)
    made = Distribution(*(None if x is None else x.cpu() for x in (result.probs, result.tokens)))
    expected = reference(past, scores, options)
    if "temperature" not in options:
        assert made.tokens is not None
        assert made.tokens.tolist() == expected.argmax(-1).tolist()
        return
    assert made.probs is not None
    assert made.probs.dtype == dtype
    wanted = expected.softmax(-1)
    assert ((made.probs > 0) == (wanted > 0)).all()
    torch.testing.assert_close(
        made.probs, wanted, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=0
    )


def test_history_matters_in_these_cases() -> None:
    """Otherwise the test above would pass with any history."""
    for options in ({"repetition_penalty": 1.4}, {"no_repeat_ngram": 2}, {"presence_penalty": 1.0}):
        sampler = processors(temperature=1.0, **options)
        assert sampler.uses_history
        made = sampler(logits(), history()).probs
        plain = processors(temperature=1.0)(logits()).probs
        assert made is not None
        assert plain is not None
        assert bool(((made - plain).abs().sum(-1) > 1e-2).any())
    assert not processors(temperature=1.0, logit_bias={1: 1.0}, top_p=0.5).uses_history


def test_presence_and_frequency_count_what_was_written() -> None:
    past, scores = history(), logits().double()
    sampler = processors(temperature=1.0, presence_penalty=0.4, frequency_penalty=0.3)
    made = sampler(scores, past).probs
    assert made is not None
    assert past.prompts is not None
    for row in range(2):
        for node in range(6):
            written = past.path(row, node)[int(past.prompts[row]) :].tolist()
            line = scores[row, node].clone()
            for token in set(written):
                line[token] -= 0.4 + 0.3 * written.count(token)
            torch.testing.assert_close(made[row, node], line.softmax(-1))


def test_greedy_with_a_penalty_is_the_argmax_after_it() -> None:
    nothing = torch.empty(1, 0, dtype=torch.long)
    past = History(torch.tensor([[5, 5]]), torch.tensor([2]), nothing, nothing, torch.tensor([0]))
    scores = torch.zeros(1, 1, VOCAB)
    scores[0, 0, 5], scores[0, 0, 9] = 3.0, 2.0
    plain = processors()(scores)
    assert plain.greedy
    assert plain.tokens is not None
    assert plain.tokens.tolist() == [[5]]
    made = processors(frequency_penalty=0.6)(scores, past).tokens
    assert made is not None
    assert made.tolist() == [[9]]


def test_padding_ids_are_never_chosen() -> None:
    scores = logits(vocab=VOCAB)
    scores[..., 35:] += 50
    for options in ({}, {"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.9}):
        made = processors(valid=35, **options)(scores)
        if made.tokens is not None:
            assert int(made.tokens.max()) < 35
        else:
            assert made.probs is not None
            assert made.probs.shape[-1] == VOCAB
            assert float(made.probs[..., 35:].sum()) == 0
            torch.testing.assert_close(made.probs.sum(-1), torch.ones(2, 6))


@pytest.mark.parametrize("width", [35, 38, 64])
def test_logits_of_another_padding_give_the_same_distributions(width: int) -> None:
    scores = logits(vocab=64)
    sampler = processors(valid=35, temperature=0.8, top_k=9)
    made, full = sampler(scores[..., :width]).probs, sampler(scores).probs
    assert made is not None
    assert full is not None
    assert made.shape == (2, 6, VOCAB)
    assert torch.equal(made, full)


def test_half_precision_is_computed_in_float32() -> None:
    scores = logits().bfloat16()
    made, full = (processors(temperature=0.7)(x).probs for x in (scores, scores.float()))
    assert made is not None
    assert full is not None
    assert made.dtype == torch.float32
    assert torch.equal(made, full)


def test_the_last_nodes_can_be_asked_for_alone() -> None:
    sampler = processors(temperature=1.0, repetition_penalty=1.5)
    scores = logits()
    every, last = sampler(scores, history()).probs, sampler(scores[:, 4:], history()).probs
    assert every is not None
    assert last is not None
    assert torch.equal(every[:, 4:], last)


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_broken_lines_are_marked_and_leave_the_others_alone(broken: float) -> None:
    for options in ({}, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 3, "min_p": 0.1}):
        damaged = logits(1, 2)
        damaged[0, 1] = broken
        sampler = processors(**options)
        made, fine = sampler(damaged), sampler(logits(1, 2))
        for found in (made, made.node(slice(0, 2))):
            assert found.usable is not None
            assert found.usable.tolist() == [[True, False]]
        for a, b in ((made.tokens, fine.tokens), (made.probs, fine.probs)):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert torch.equal(a[:, 0], b[:, 0])
        if made.probs is None:
            assert made.tokens is not None
            assert made.tokens[0, 1] == 0
        else:
            assert made.probs[0, 1].nonzero().tolist() == [[0]]
        assert sampler.log_probs(damaged)[0, 1].exp().nonzero().tolist() == [[0]]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 1e-9),
        ("temperature", float("nan")),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("min_p", -0.1),
        ("min_p", 1.5),
        ("repetition_penalty", 0.0),
        ("presence_penalty", float("inf")),
        ("frequency_penalty", float("nan")),
        ("no_repeat_ngram", -2),
        ("logit_bias", {3: float("inf")}),
    ],
)
def test_values_out_of_range_name_the_option(option: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"sampling\\.{option}"):
        SamplingOptions(**{option: value})


def test_a_biased_id_outside_the_vocabulary_is_an_error() -> None:
    with pytest.raises(UserError, match=r"sampling\.logit_bias\.35"):
        processors(valid=35, logit_bias={35: 1.0})
