"""Sampled tokens depend on a request, its index and its seed, and on nothing else."""

from dataclasses import replace

import pytest
import torch
from harness import PROMPTS, requests, rerun, run_engine, tiny, tokens, with_eos

from draftmesh.registry import build
from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.sampling import History
from draftmesh.stages.sampling.noise import NoiseChance

SAMPLING = {"temperature": 0.9, "top_p": 0.95, "repetition_penalty": 1.1}


@pytest.mark.parametrize("verifier", ["match", "ratio", "block"])
def test_tokens_do_not_depend_on_the_batch(near, verifier):
    setup = with_eos(tiny("llama"))
    asked = [replace(r, seed=100 + r.index // 2) for r in requests()]
    draft = {"name": "small", "path": near, "k": 3}

    def run(some, batch_size):
        result = run_engine(setup, some, draft, verifier, SAMPLING, batch_size)
        assert result.counters.accepted
        return {c.request.id: c.token_ids for c in result.completions}

    alone = run(asked, 1)
    assert run(asked, 5) == alone
    assert run(list(reversed(asked)), 3) == alone
    assert run(asked[2:4], 2).items() <= alone.items()


@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_with_match_tokens_do_not_depend_on_the_draft_either(near, k, batch_size):
    setup = with_eos(tiny("llama"))
    plain = tokens(run_engine(setup, requests(seed=7), sampling=SAMPLING))
    for draft in (
        {"name": "small", "path": near, "k": k},
        {"name": "self", "k": k, "exit_layer": 2},
        {"name": "ngram", "k": k, "min_match": 1},
    ):
        ours = run_engine(setup, requests(seed=7), draft, "match", SAMPLING, batch_size=batch_size)
        assert tokens(ours) == plain


def test_seeds_and_indices_make_a_difference():
    setup = with_eos(tiny("llama"))
    same = [replace(r, token_ids=PROMPTS[0]) for r in requests()]
    first = tokens(run_engine(setup, same, sampling=SAMPLING))
    assert len({tuple(line) for line in first}) == len(first)
    other = tokens(
        run_engine(setup, [replace(r, seed=1) for r in same], sampling=SAMPLING, batch_size=5)
    )
    assert not any(a == b for a, b in zip(first, other, strict=True))
    big = [replace(r, seed=2**63 - 1) for r in same]
    assert tokens(run_engine(setup, big, sampling=SAMPLING)) != first


@torch.inference_mode()
def test_plain_sampling_is_the_processors_and_the_noise():
    """A slow loop over whole sequences, transformers' own forward and the run's sampler."""
    setup = with_eos(tiny("llama"))
    ours = tokens(run_engine(setup, requests(seed=3), sampling=SAMPLING, batch_size=5))
    sampler = build("sampling", {"name": "processors", **SAMPLING}, 96, 96)
    for request, line in zip(requests(seed=3), ours, strict=True):
        chance = NoiseChance.of([request], torch.device("cpu"))
        ids = list(request.token_ids)
        nothing = torch.empty(1, 0, dtype=torch.long)
        for token in line:
            history = History(
                torch.tensor([ids]),
                torch.tensor([len(ids)]),
                nothing,
                nothing,
                torch.tensor([len(request.token_ids)]),
            )
            probs = sampler(rerun(setup.checkpoint.model, ids)[None, -1:], history).probs
            row, position = torch.tensor([0]), torch.tensor([len(ids)])
            assert int(chance.sample(probs[0], row, position, Stream.TARGET)) == token
            ids.append(token)
