"""Draft x verifier x shape x batch x sampling x architecture, in float64."""

from functools import cache
from itertools import product

import pytest
from cover import read
from drafts import Size, builder, setup_of
from enumerated import conditional, step_distribution
from factors import SAMPLING, SHAPES, Case
from harness import PROMPTS, Setup, generate, requests, run_engine, tokens

from draftmesh.stages.verifier.exactness import total_variation

NEW = 12
CASES = read()
FEW = Size(vocab_size=5, std=0.1)
"""Models whose outcomes can be enumerated."""

SMALL_SHAPES = {
    "chain": {"k": 2},
    "static": {"shape": "static", "k": 2, "paths": [[0], [1], [0, 0]]},
    "independent": {
        "shape": "static",
        "k": 2,
        "paths": [[0], [1], [0, 0]],
        "children": "independent",
    },
}
OTHERS = [tuple(token % FEW.vocab_size for token in prompt) for prompt in PROMPTS]
DISTRIBUTION = 1e-6
"""Largest total variation distance: routers and some norms compute in float32."""


def drawn(case: Case) -> bool:
    """Sampled by a verifier whose tokens need not be those of plain decoding."""
    return case.sampling != "greedy" and case.verifier != "match"


@cache
def plain(arch: str, sampling: str) -> list[list[int]]:
    """One request at a time, without a draft."""
    setup = setup_of(arch)
    return tokens(run_engine(setup, requests(max_new_tokens=NEW), sampling=SAMPLING[sampling]))


@cache
def uncertain(arch: str) -> tuple[int, ...]:
    """A prompt after which the model does not know what to say."""
    setup, options = setup_of(arch, FEW), SAMPLING["nucleus"]
    for prompt in product(range(FEW.vocab_size), repeat=3):
        (first,) = tokens(run_engine(setup, requests([prompt], 1), sampling=options))
        after = conditional(setup, (*prompt, *first), len(prompt), options)
        if (after(()) > 0).sum() > 1 and min((after((t,)) > 0).sum() for t in (0, 1)) > 1:
            return prompt
    raise AssertionError("this model is always sure")


@pytest.mark.parametrize("arch", sorted({case.arch for case in CASES}))
def test_plain_decoding_is_that_of_transformers(arch):
    setup: Setup = setup_of(arch)
    assert plain(arch, "greedy") == [generate(setup, prompt, NEW) for prompt in PROMPTS]


@pytest.mark.parametrize("case", [case for case in CASES if not drawn(case)], ids=str)
def test_tokens_are_those_of_plain_decoding(case):
    result = run_engine(
        setup_of(case.arch),
        requests(max_new_tokens=NEW),
        builder(case),
        case.verifier,
        SAMPLING[case.sampling],
        int(case.batch),
    )
    assert tokens(result) == plain(case.arch, case.sampling)
    assert (result.counters.drafted > 0) == (case.draft != "none")


@pytest.mark.parametrize("case", [case for case in CASES if drawn(case)], ids=str)
def test_a_step_has_the_distribution_of_the_target(case):
    setup = setup_of(case.arch, FEW)
    options = SAMPLING[case.sampling]
    prompts = [uncertain(case.arch), *OTHERS[: int(case.batch) - 1]]
    ours, wanted = step_distribution(
        setup,
        prompts,
        builder(case, FEW, SMALL_SHAPES[case.shape]),
        case.verifier,
        options,
        length=3,
    )
    assert total_variation(ours, wanted) < DISTRIBUTION
    assert ours.sum() == pytest.approx(1)
    assert (ours > 0).sum() > 3


SEEN_ON = ("qwen3", "llama", "mistral", "mixtral", "gpt_oss", "deepseek_v3")
PAIRS = sorted({(c.draft, c.shape) for c in CASES if c.draft != "none"})


@pytest.mark.parametrize(("draft", "shape"), PAIRS)
def test_every_draft_meets_zero_partial_and_full_acceptance(draft, shape):
    """Otherwise the tests above would prove little."""
    seen: set[str] = set()
    for arch in SEEN_ON:
        case = Case(draft, "match", shape, "5", "greedy", arch)
        setup = setup_of(arch)
        counters = run_engine(
            setup, requests(max_new_tokens=24), builder(case), batch_size=5
        ).counters
        deepest = SHAPES[shape]["k"]
        rejected = {d for d, n in counters.offered_at.items() if n > counters.accepted_at[d]}
        seen |= {"zero"} if 0 in rejected else set()
        seen |= {"partial"} if rejected - {0} else set()
        seen |= {"full"} if counters.histogram[deepest] else set()
        if len(seen) == 3:
            return
    raise AssertionError(f"only {sorted(seen)}")
