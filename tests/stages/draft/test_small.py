import json

import pytest
from harness import requests, run_engine, save_draft, tiny, tokens, with_eos

from draftmesh.registry import UserError
from draftmesh.stages.draft.small import SmallDraft


@pytest.fixture(scope="module")
def same(tmp_path_factory) -> str:
    """The target itself."""
    return save_draft(tmp_path_factory.mktemp("same"))


@pytest.fixture(scope="module")
def near(tmp_path_factory) -> str:
    """Almost the target."""
    return save_draft(tmp_path_factory.mktemp("near"), noise=0.15)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_its_cache_follows_the_accepted_tokens(same, k, batch_size):
    """The target as its own draft is always right, as long as it sees what the target sees."""
    setup = with_eos(tiny("llama"))
    draft = {"name": "small", "path": same, "k": k}
    for sampling in (None, {"temperature": 0.9}):
        for verifier in ("match", "ratio"):
            counters = run_engine(setup, requests(), draft, verifier, sampling, batch_size).counters
            assert counters.accepted == counters.drafted > 0


@pytest.mark.parametrize("k", [1, 3, 6])
def test_it_goes_on_after_rejections(near, k):
    setup = with_eos(tiny("llama"))
    draft = {"name": "small", "path": near, "k": k}
    result = run_engine(setup, requests(max_new_tokens=40), draft, batch_size=5)
    assert tokens(result) == tokens(run_engine(setup, requests(max_new_tokens=40)))
    assert result.counters.first_rejections
    assert result.counters.accepted > result.counters.steps / 4


def test_a_draft_is_as_exact_in_a_batch_as_alone(near):
    """Its own tokens, not only those that come out, must not depend on the batch."""
    setup = with_eos(tiny("llama"))
    draft = {"name": "small", "path": near, "k": 4}
    alone = run_engine(setup, requests(), draft).counters
    together = run_engine(setup, requests(), draft, batch_size=5).counters
    assert together.accepted == alone.accepted
    assert together.histogram == alone.histogram


@pytest.mark.parametrize("arch", ["qwen2", "mistral", "gpt2", "deepseek_v3", "gpt_oss"])
def test_any_architecture_can_draft(arch, tmp_path):
    setup = with_eos(tiny("llama"))
    path = save_draft(tmp_path, arch=arch)
    result = run_engine(setup, requests(), {"name": "small", "path": path, "k": 3}, batch_size=5)
    assert tokens(result) == tokens(run_engine(setup, requests()))
    same_kind = with_eos(tiny(arch))
    own = run_engine(same_kind, requests(), {"name": "small", "path": path, "k": 3}, batch_size=5)
    assert own.counters.accepted == own.counters.drafted > 0


def refusal(draft):
    with pytest.raises(UserError) as caught:
        run_engine(tiny("llama"), requests(), draft)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_needs_a_model():
    assert "draft.path" in refusal({"name": "small"})
    assert "draft.path=/nowhere" in refusal({"name": "small", "path": "/nowhere"})


@pytest.mark.parametrize("arch", ["mamba", "bloom"])
def test_models_that_cannot_take_tokens_back_cannot_draft(arch, tmp_path):
    path = save_draft(tmp_path, arch=arch)
    message = refusal({"name": "small", "path": path})
    assert message.startswith(f"draft.path={path}")
    assert "choose another draft" in message


def test_a_draft_without_tokenizer_cannot_be_compared(tmp_path):
    path = save_draft(tmp_path)
    for file in tmp_path.glob("*token*"):
        file.unlink()
    assert "the draft has no tokenizer" in refusal({"name": "small", "path": path})


def test_a_damaged_folder_names_the_option(tmp_path):
    path = save_draft(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))
    assert "draft.path" in refusal({"name": "small", "path": path})


def test_the_target_makes_no_forwards_for_it(same):
    assert SmallDraft.target_forwards == 0
    assert SmallDraft.capture == ()
