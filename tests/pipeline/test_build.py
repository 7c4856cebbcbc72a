"""From a configuration to stages that fit together."""

from collections import Counter

import pytest
from built import built, composed

from draftmesh.pipeline.build import build_pipeline, merge
from draftmesh.registry import UserError
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.stages.model.forwardonly import ForwardOnlyTarget
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.parallel.ranks import Solo


def tokens(pipeline, engine=None):
    made = pipeline.generate(engine or pipeline.engine, pipeline.requests())
    return [completion.token_ids for completion in made.completions]


@pytest.mark.parametrize("arch", ["mamba", "qwen3_next", "bloom"])
def test_models_that_cannot_take_tokens_back_decode_plainly(tmp_path, arch):
    pipeline = built(tmp_path, f"model=tiny_{arch}", "draft=none")
    assert isinstance(pipeline.target, ForwardOnlyTarget)
    assert [len(line) for line in tokens(pipeline)] == [8, 8, 8]


@pytest.mark.parametrize("arch", ["mamba", "qwen3_next", "bloom"])
@pytest.mark.parametrize("draft", ["ngram", "self", "small", "eagle", "cascade"])
def test_and_are_refused_with_a_draft(tmp_path, arch, draft):
    pipeline = built(tmp_path, f"model=tiny_{arch}", f"draft={draft}")
    with pytest.raises(UserError, match=r"ForCausalLM .*: use draft=none$") as caught:
        pipeline.engine  # noqa: B018
    assert "\n" not in str(caught.value)


def test_and_in_several_ranks(tmp_path):
    class Two(Solo):
        def __init__(self):
            super().__init__()
            self.world = 2

    with pytest.raises(UserError, match="use parallel=single"):
        build_pipeline(composed("model=tiny_mamba", "draft=none"), tmp_path, Two())


def test_transformers_own_attention_gives_the_same_tokens(tmp_path):
    ours = built(tmp_path, "draft=none")
    assert isinstance(ours.target, HFTarget)
    for name in ("sdpa", "eager"):
        theirs = built(tmp_path, "draft=none", f"model.attention={name}")
        assert isinstance(theirs.target, ForwardOnlyTarget)
        assert tokens(theirs) == tokens(ours)


def test_gpt2_resumes_nowhere_but_drafts_otherwise(tmp_path):
    pipeline = built(tmp_path, "model=tiny_gpt2", "draft=self", "draft.k=2")
    with pytest.raises(UserError, match=r"cannot stop at a layer .* draft=self"):
        pipeline.engine  # noqa: B018
    assert tokens(built(tmp_path, "model=tiny_gpt2")) == tokens(pipeline, pipeline.plain)


@pytest.mark.parametrize("verifier", ["auto", "match", "ratio", "block"])
def test_the_engine_and_plain_decoding_agree(tmp_path, verifier):
    pipeline = built(tmp_path, "draft.min_match=1", f"verifier={verifier}")
    assert pipeline.verifier_name == ("match" if verifier == "auto" else verifier)
    assert pipeline.lossless
    assert tokens(pipeline) == tokens(pipeline, pipeline.plain)


def test_trees_are_known_before_they_are_drafted(tmp_path):
    assert not built(tmp_path, "draft=self", "draft.k=2").branching
    tree = built(tmp_path, "draft=self", "draft.k=2", "draft.shape=static", "draft.nodes=4")
    assert tree.branching


def test_requests_are_the_prompts_in_order(tmp_path):
    pipeline = built(tmp_path, "seed=7", "stop=[x,yz]")
    made = pipeline.requests()
    assert [r.index for r in made] == [0, 1, 2]
    assert {r.seed for r in made} == {7}
    assert {r.max_new_tokens for r in made} == {8}
    assert {r.stop for r in made} == {("x", "yz")}
    one = built(tmp_path, "prompt='Hello, you'").requests()
    assert [r.prompt for r in one] == ["Hello, you"]
    assert pipeline.checkpoint.tokenizer.decode(one[0].token_ids) == "Hello, you"


def test_experts_are_counted_and_forgotten(tmp_path):
    pipeline = built(tmp_path, "model=tiny_mixtral", "model.hidden_size=32")
    tokens(pipeline)
    load, facts = pipeline.ffn_facts([pipeline.ffn.moe.report()])
    assert sum(map(sum, load)) > 0
    assert facts["expert_load_balance"] > 0
    pipeline.reset_meters()
    load, _ = pipeline.ffn_facts([pipeline.ffn.moe.report()])
    assert load is None or sum(map(sum, load)) == 0


def test_dense_models_have_no_expert_facts(tmp_path):
    assert built(tmp_path).ffn_facts([None]) == (None, {})


def test_finished_completions_are_written_and_shown(tmp_path):
    shown = []
    pipeline = built(tmp_path, show=lambda completion, pieces: shown.append((completion, pieces)))
    pipeline.generate(pipeline.engine, pipeline.requests(), pipeline.finished)
    assert len((tmp_path / "samples.jsonl").read_text().splitlines()) == 3
    decode = pipeline.checkpoint.tokenizer.decode
    assert all("".join(pieces) == decode(c.token_ids) for c, pieces in shown)
    assert len(shown) == 3


def test_metrics_over_time_reach_the_log(tmp_path):
    seen = []
    pipeline = built(tmp_path, log=lambda metrics, step: seen.append((metrics, step)))
    pipeline.log_metrics({"loss": 1.0}, 3)
    assert seen == [({"loss": 1.0}, 3)]
    built(tmp_path).log_metrics({"loss": 1.0})


def test_shares_of_data_parallel_groups_are_merged():
    def share(index, steps, verify):
        completion = Completion(Request(str(index), "", (1,), index, 0, 4))
        counters = Counters(
            steps=steps, rounds=steps, accepted=2, verify_s=verify, histogram=Counter({2: steps})
        )
        return Generation([completion], counters, verify)

    whole = merge([share(1, 3, 0.5), share(0, 2, 0.9)])
    assert [c.request.index for c in whole.completions] == [0, 1]
    assert whole.seconds == 0.9
    assert (whole.counters.steps, whole.counters.accepted) == (5, 4)
    assert (whole.counters.rounds, whole.counters.verify_s) == (2, 0.9)
    assert whole.counters.histogram == Counter({2: 5})
