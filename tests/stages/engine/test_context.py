"""The end of a model's context, reached in the middle of a draft."""

import pytest
from harness import generate, requests, run_engine, save_draft, tiny, tokens, with_eos
from known_draft import TREE, KnownDraft

PROMPTS = [tuple((11 * i) % 90 + 2 for i in range(n)) for n in (20, 1, 26, 29, 31)]
NEW = 40


@pytest.mark.parametrize("arch", ["llama", "gpt2", "mistral"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_sequences_end_at_the_context_limit(arch, batch_size):
    setup = with_eos(tiny(arch, context=32))
    room = [32 - len(prompt) for prompt in PROMPTS]
    wanted = [generate(setup, p, n) for p, n in zip(PROMPTS, room, strict=True)]
    asked = requests(PROMPTS, max_new_tokens=NEW)
    assert tokens(run_engine(setup, asked, batch_size=batch_size)) == wanted
    for hits, parents in (((4, 1), (-1, 0, 1, 2)), ((3, 0), TREE)):
        result = run_engine(
            setup,
            asked,
            lambda context, hits=hits, parents=parents: KnownDraft(context, wanted, hits, parents),
            batch_size=batch_size,
        )
        assert tokens(result) == wanted
        assert {c.finish_reason for c in result.completions} == {"length"}
        assert result.counters.accepted


@pytest.mark.parametrize(
    "draft",
    [
        {"name": "self", "k": 4, "exit_layer": 2},
        {"name": "self", "k": 4, "skip_layers": [1]},
        {"name": "ngram", "k": 4, "min_match": 1},
    ],
)
@pytest.mark.parametrize("batch_size", [1, 5])
def test_drafts_reach_the_context_limit_of_the_target(draft, batch_size):
    setup = with_eos(tiny("llama", context=32))
    asked = requests(PROMPTS, max_new_tokens=NEW)
    assert tokens(run_engine(setup, asked, draft, batch_size=batch_size)) == tokens(
        run_engine(setup, asked)
    )


@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_past_the_draft_models_own_context_the_target_goes_on_alone(tmp_path, shape, batch_size):
    setup = with_eos(tiny("llama"))
    path = save_draft(tmp_path, context=32)
    asked = requests(PROMPTS, max_new_tokens=NEW)
    plain = run_engine(setup, asked)
    draft = {"name": "small", "k": 4, "path": path, "shape": shape}
    result = run_engine(setup, asked, draft, batch_size=batch_size)
    assert tokens(result) == tokens(plain)
    for prompt, completion in zip(PROMPTS, result.completions, strict=True):
        marks = [len(prompt) + i for i, drafted in enumerate(completion.drafted) if drafted]
        assert all(position < 32 for position in marks)
    # The draft is the target itself, so whatever it had room to propose was right.
    assert result.counters.accepted > 20
    assert result.counters.first_rejections == 0


def test_prompts_longer_than_the_draft_models_context(tmp_path):
    setup = with_eos(tiny("llama"))
    path = save_draft(tmp_path, context=16)
    asked = requests(PROMPTS, max_new_tokens=8)
    draft = {"name": "small", "k": 4, "path": path}
    result = run_engine(setup, asked, draft, batch_size=5)
    assert tokens(result) == tokens(run_engine(setup, asked))
    drafted = [any(completion.drafted) for completion in result.completions]
    assert drafted == [False, True, False, False, False]
