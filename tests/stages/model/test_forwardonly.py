"""Plain decoding of models whose layers cannot take tokens back."""

import pytest
import torch
from harness import PROMPTS, generate, requests, run_engine, tiny, tokens, with_eos

from draftmesh.registry import UserError
from draftmesh.stages.model.forwardonly import ForwardOnlyTarget

ARCHITECTURES = ("mamba", "qwen3_next", "bloom")


def load(arch):
    return tiny(arch, ForwardOnlyTarget)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("batch_size", [1, 5])
def test_prompts_of_different_lengths_decode_as_transformers_does(arch, batch_size):
    setup = with_eos(load(arch))
    ours = tokens(run_engine(setup, requests(), batch_size=batch_size))
    assert ours == [generate(setup, prompt, 12) for prompt in PROMPTS]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_rows_end_while_others_go_on(arch):
    setup = with_eos(load(arch))
    free = tokens(run_engine(setup, requests()))
    ending = with_eos(setup, free[0][3], free[2][0])
    ours = tokens(run_engine(ending, requests(), batch_size=5))
    assert ours == [generate(ending, prompt, 12) for prompt in PROMPTS]
    assert len({len(line) for line in ours}) > 1


def test_sampling_does_not_depend_on_the_batch():
    setup = with_eos(load("mamba"))
    options = {"temperature": 0.9, "repetition_penalty": 1.2}
    alone = tokens(run_engine(setup, requests(), sampling=options))
    assert tokens(run_engine(setup, requests(), sampling=options, batch_size=5)) == alone
    assert tokens(run_engine(setup, requests(seed=1), sampling=options)) != alone


@pytest.mark.parametrize(
    "asked",
    [
        {"parents": torch.tensor([[-1, -1]])},
        {"offset": 1},
        {"layers": (0,)},
        {"capture": (1,)},
    ],
)
def test_what_only_a_draft_needs_is_refused(asked):
    target = load("mamba").target
    with pytest.raises(UserError, match="draft=none"):
        target.forward(torch.tensor([[4, 5]]), target.new_cache(1, 8), **asked)


def test_a_draft_is_refused_by_the_engine_too():
    setup = with_eos(load("mamba"))
    ngram = {"name": "ngram", "k": 2, "min_match": 1}
    with pytest.raises(UserError, match="draft=none"):
        run_engine(setup, requests([(7, 8, 7, 8, 7, 8)]), ngram)


def test_parts_of_the_model_are_not_run_by_themselves():
    target = load("mamba").target
    assert target.embed(torch.tensor([4])).shape == (1, 32)
    for part in (target.norm, target.lm_head):
        with pytest.raises(UserError, match="draft=none"):
            part(torch.zeros(1, 32))


def test_a_model_without_a_cache_is_refused(monkeypatch):
    target = load("mamba").target
    forward = type(target.model).forward

    def forgetful(self, *arguments, **options):
        output = forward(self, *arguments, **options)
        output.cache = None
        return output

    monkeypatch.setattr(type(target.model), "forward", forgetful)
    with pytest.raises(UserError, match=r"model\.path"):
        target.forward(torch.tensor([[4, 5]]), target.new_cache(1, 8))
