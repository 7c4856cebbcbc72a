"""engine=transformers against the native engine: the same greedy tokens, and what it counts."""

import json
import re

import pytest
import torch
from built import built, composed

from draftmesh.pipeline.run import run
from draftmesh.pipeline.validate import check_options
from draftmesh.registry import UserError, build
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.request import Request
from draftmesh.stages.engine.observer import Observer
from draftmesh.stages.engine.sequences import Sequences
from draftmesh.stages.model.packed import PackedLinear

CHOICES = {"model": "tiny_llama", "draft": "none", "task": "bench"}


def tokens(generation):
    return [c.token_ids for c in generation.completions]


def both(folder, *overrides):
    pipelines = [built(folder, *overrides, f"engine={e}") for e in ("native", "transformers")]
    return [p.generate(p.engine, p.requests()) for p in pipelines]


@pytest.mark.parametrize("arch", ["llama", "gemma2", "mixtral", "gpt_oss", "mamba"])
def test_plain_greedy_tokens_are_the_native_ones(tmp_path, arch):
    model = f"model=tiny_{arch}"
    ours, theirs = both(tmp_path, model, "draft=none", "max_new_tokens=24", "batch_size=3")
    assert tokens(ours) == tokens(theirs)
    counters = theirs.counters
    assert counters.steps == counters.emitted == 3 * 23
    assert (counters.rounds, counters.target_forwards, counters.drafted) == (69, 72, 0)
    assert [c.accept_lengths for c in theirs.completions] == [[1] * 24] * 3


def test_a_batch_is_padded_and_each_row_is_as_alone(tmp_path):
    """In float32, where a near-tie could turn: the margins of this model are far wider."""
    options = ("draft=none", "max_new_tokens=12", "model.dtype=float32", "engine=transformers")
    alone, together = (built(tmp_path, *options, f"batch_size={size}") for size in (1, 3))
    one = alone.generate(alone.engine, alone.requests())
    three = together.generate(together.engine, together.requests())
    assert tokens(one) == tokens(three)
    assert (one.counters.rounds, three.counters.rounds) == (33, 11)
    assert len({len(r.token_ids) for r in alone.requests()}) > 1


@pytest.mark.parametrize(
    "options",
    [("sampling.repetition_penalty=5", "sampling.no_repeat_ngram=1"), ("model.context=112",)],
)
def test_padding_never_changes_the_output(tmp_path, options):
    """Penalties would count it; learned positions would end before the longest row does."""
    shared = ("model=tiny_gpt2", "draft=none", "max_new_tokens=40", "model.dtype=float32")
    ours, theirs = both(tmp_path, *shared, "batch_size=3", *options)
    assert tokens(ours) == tokens(theirs)
    assert theirs.counters.prefill_tokens == ours.counters.prefill_tokens


def test_drafts_beyond_the_context_are_refused(tmp_path):
    options = ("draft=ngram", "engine=transformers", "batch_size=1", "model.context=112")
    pipeline = built(tmp_path, *options, "max_new_tokens=60")
    with pytest.raises(UserError, match=r"max_new_tokens=60: .* context of 112 tokens"):
        pipeline.generate(pipeline.engine, pipeline.requests())


def test_a_draft_that_ends_the_row_is_no_rejection():
    request = Request("a", "", (1, 2), 0, 0, 10)
    counters = Counters()
    observer = Observer(
        Sequences([request], None, (99,), 1000), 2, counters, lambda _: None, torch.device("cpu")
    )
    observer.note_forward(None, (torch.zeros(1, 2),), {})
    observer(torch.tensor([[1, 2, 5]]), None)
    observer.note_forward(None, (torch.zeros(1, 4),), {})
    assert observer(torch.tensor([[1, 2, 5, 6, 7, 99]]), None).tolist() == [True]
    assert (counters.drafted, counters.accepted, counters.first_rejections) == (3, 2, 0)


@pytest.mark.parametrize(("candidates", "steps"), [(0, 0), (2, 1)])
def test_drafts_that_come_with_the_prompt_are_counted(candidates, steps):
    request = Request("a", "", (1, 2), 0, 0, 10)
    counters = Counters()
    observer = Observer(
        Sequences([request], None, (), 1000), 2, counters, lambda _: None, torch.device("cpu")
    )
    observer.note_forward(None, (torch.zeros(1, 2 + candidates),), {})
    observer(torch.tensor([[1, 2, 5, 6][: 3 + steps]]), None)
    assert (counters.prefills, counters.prefill_tokens) == (1, 2)
    found = (counters.steps, counters.emitted, counters.drafted, counters.accepted)
    assert found == (steps, 2 * steps, candidates, steps)
    assert counters.first_rejections == steps


def test_prompt_lookup_drafts_and_keeps_the_tokens(tmp_path):
    shared = ("data.limit=2", "max_new_tokens=48", "batch_size=1", "model.std=0.4")
    ours, theirs = both(tmp_path, "draft=ngram", "draft.min_match=1", *shared)
    assert tokens(ours) == tokens(theirs)
    counters = theirs.counters
    assert 0 < counters.accepted < counters.drafted
    assert counters.steps + counters.accepted == counters.emitted
    assert sum(counters.histogram.values()) == counters.steps
    assert sum(counters.accepted_at.values()) == counters.accepted
    for completion in theirs.completions:
        assert sum(completion.accept_lengths) == len(completion.token_ids) == 48


def test_rows_end_where_they_do_natively(tmp_path):
    """Stop strings and lengths differ by row; a batch goes on until all have ended."""
    plain, _ = both(tmp_path, "draft=none", "max_new_tokens=24", "batch_size=3")
    text = plain.completions[1].text
    stop = next(character for character in text[4:] if character.isascii() and character.isalnum())
    ours, theirs = both(
        tmp_path, "draft=none", "max_new_tokens=24", "batch_size=3", f"stop=[{json.dumps(stop)}]"
    )
    for mine, other in zip(ours.completions, theirs.completions, strict=True):
        assert (mine.token_ids, mine.text) == (other.token_ids, other.text)
        assert mine.finish_reason == other.finish_reason
    assert theirs.completions[1].finish_reason == "stop_string"
    assert len({len(c.token_ids) for c in theirs.completions}) > 1


def test_the_native_engine_finds_the_model_as_it_was(tmp_path):
    pipeline = built(tmp_path, "draft=none", "model.dtype=float32")
    requests = pipeline.requests()
    before = tokens(pipeline.generate(pipeline.plain, requests))
    layers = [m for m in pipeline.checkpoint.model.modules() if isinstance(m, PackedLinear)]
    rows = [layer.rows for layer in layers]
    pipeline.generate(pipeline.peer("transformers"), requests)
    assert [layer.rows for layer in layers] == rows
    assert tokens(pipeline.generate(pipeline.plain, requests)) == before


def test_sampling_follows_the_seed_and_leaves_torchs_generator_alone(tmp_path):
    found = []
    state = torch.random.get_rng_state()
    for seed in (1, 1, 2):
        options = ("draft=none", "sampling=nucleus", f"seed={seed}", "engine=transformers")
        pipeline = built(tmp_path, *options)
        assert not pipeline.comparable
        found.append(tokens(pipeline.generate(pipeline.engine, pipeline.requests())))
    assert found[0] == found[1] != found[2]
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["draft=self"], "draft=self: engine=transformers only drafts with none, ngram, small"),
        (["draft=small", "draft.shape=static"], r"draft\.shape: .* chains"),
        (["draft=none", "verifier=ratio"], r"verifier=ratio: .* use verifier=auto"),
        (["draft=none", "parallel=tp2"], "use parallel=single"),
        (["draft=ngram", "draft.k=auto"], r"draft\.k=auto: .* give a number"),
        (["draft=ngram", "task=certify"], "task=certify looks into engine=native only"),
        (["draft=ngram", "batch_size=2"], r"batch_size=2: .* engine=native"),
        (
            ["draft=none", "sampling.presence_penalty=1"],
            r"sampling\.presence_penalty: .* engine=native",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_before_anything_is_loaded(overrides, message):
    with pytest.raises(UserError, match=message):
        check_options(composed("engine=transformers", *overrides))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("parallel=tp2", r"task\.peers=transformers: .* use parallel=single"),
        ("sampling.frequency_penalty=1", r"sampling\.frequency_penalty: .* engine=native"),
    ],
)
def test_a_peer_is_refused_for_the_same_reasons(override, message):
    cfg = composed("task=bench", "task.peers=[transformers]", override)
    with pytest.raises(UserError, match=message):
        check_options(cfg)


def test_an_unknown_peer_is_named_before_anything_is_loaded():
    with pytest.raises(UserError, match=r"task\.peers=.* there is no vlm; known: native, "):
        build("task", {"name": "bench", "peers": ["vlm"]})


def test_what_cannot_be_told_apart_is_left_open(tmp_path, capsys):
    cfg = composed("engine=transformers", "draft=ngram", "batch_size=1")
    assert run(cfg, tmp_path, CHOICES) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["engine"] == "transformers"
    assert results["verify_ms"] > 0
    assert results["draft_ms"] is results["predicted_speedup"] is None
    printed = capsys.readouterr().out
    assert "draft and verify" in printed
    assert "draft 0%" not in printed
    assert '<i class="swatch verify"></i>draft and verify' in (tmp_path / "report.html").read_text()


def test_bench_measures_it_as_a_peer(tmp_path, capsys):
    cfg = composed("task=bench", "task.peers=[transformers]", "task.repeats=1", "draft=none")
    cfg["task"]["verify_nodes"] = []
    assert run(cfg, tmp_path, CHOICES) == 0
    report = tmp_path / "report.html"
    results = json.loads((tmp_path / "results.json").read_text())
    ratio = results["throughput_tok_s"] / results["transformers_throughput_tok_s"]
    assert results["method_vs_transformers"] == pytest.approx(ratio)
    gain = f"{ratio:.2f}x"
    printed = capsys.readouterr().out
    assert re.search(rf"against transformers +{gain} +its plain decoding: ", printed)
    assert f'against transformers</td><td class="number">{gain}' in report.read_text()
    sides = {row["side"] for row in json.loads((tmp_path / "bench.json").read_text())["repeats"]}
    assert sides == {"method", "plain", "transformers"}
