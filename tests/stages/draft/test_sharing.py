"""Draft models that share the target's embedding and LM head."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from harness import VOCAB, Setup, requests, rerun, run_engine, tiny, tokens, with_eos

from draftmesh.registry import UserError
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.sharing import Sharing, bare_llama, is_sharing, llama_config
from draftmesh.stages.draft.small import SmallDraft
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors
from draftmesh.stages.task.training.small.initial import start_from_layers


def share(folder: Path, setup: Setup, layers: int = 3, ids: torch.Tensor | None = None) -> str:
    """The target's first weights as a small model; all layers make the target itself."""
    model = bare_llama(llama_config(setup.target.config, layers)).double()
    start_from_layers(model, setup.checkpoint.model)
    drafted = torch.arange(setup.target.vocab_size) if ids is None else ids
    Sharing(model, drafted).save(folder, torch.float64, "tiny")
    return str(folder)


def test_the_target_itself_is_always_right(tmp_path):
    setup = with_eos(tiny("llama"))
    draft = {"name": "small", "path": share(tmp_path, setup), "k": 3}
    counters = run_engine(setup, requests(), draft, batch_size=5).counters
    assert counters.accepted == counters.drafted > 0


@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_tokens_are_plain_decodings(tmp_path, shape, batch_size):
    setup = with_eos(tiny("llama"))
    ids = torch.arange(0, VOCAB, 2)
    path = share(tmp_path, setup, layers=2, ids=ids)
    draft = {"name": "small", "path": path, "k": 3, "shape": shape}
    result = run_engine(setup, requests(max_new_tokens=30), draft, batch_size=batch_size)
    assert tokens(result) == tokens(run_engine(setup, requests(max_new_tokens=30)))
    assert result.counters.drafted > result.counters.accepted


def test_only_its_ids_are_drafted(tmp_path):
    setup = tiny("llama")
    ids = torch.tensor([3, 7, 50])
    path = Path(share(tmp_path, setup, ids=ids))
    draft = HFTarget(Sharing.load(path, setup.target).connect(setup.target))
    lines = [5, 9, 9, 14]
    logits = rerun(setup.checkpoint.model, lines)
    own = draft.forward(torch.tensor([lines]), draft.new_cache(1, 4)).logits[0]
    assert torch.isinf(own).sum() == len(lines) * (VOCAB - 3)
    assert torch.allclose(own[:, ids], logits[:, ids], atol=1e-5)


def test_it_is_checked_against_its_model(tmp_path, caplog):
    setup = tiny("llama", context=512)
    sampler = Processors(SamplingOptions(), VOCAB)
    context = DraftContext(setup.target, setup.checkpoint, sampler, Solo())
    good = SmallDraft(SmallDraft.Config(path=share(tmp_path / "good", setup)), context)
    assert good.facts() == {"draft_agreement": 1.0}
    assert not caplog.records
    bad = share(tmp_path / "bad", setup, ids=torch.tensor([3, 7]))
    assert SmallDraft(SmallDraft.Config(path=bad), context).facts()["draft_agreement"] < 0.15
    assert f"draft.path={bad}" in caplog.text


def refusal(path, setup=None):
    with pytest.raises(UserError) as caught:
        run_engine(setup or tiny("llama"), requests(), {"name": "small", "path": str(path)})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_another_models_draft_is_refused_with_both_shapes(tmp_path):
    path = share(tmp_path, tiny("llama"))
    other = tiny("llama", hidden_size=16, heads=2, kv_heads=1)
    message = refusal(path, other)
    assert message.startswith(f"draft.path={path}")
    assert "hidden size 32 and 96 tokens" in message
    assert "hidden size 16 and 96 tokens" in message


def test_a_half_written_folder_is_named(tmp_path):
    path = Path(share(tmp_path / "good", tiny("llama")))
    assert is_sharing(path)
    whole = (path / "model.safetensors").read_bytes()
    half = shutil.copytree(path, tmp_path / "half")
    (half / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    assert "damaged or incomplete" in refusal(half)
    (half / "model.safetensors").unlink()
    assert str(half) in refusal(half)
    (half / "config.json").write_text("{")
    assert "config.json cannot be read" in refusal(half)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": 4}, "lacks model.layers.3."),
        ({"num_hidden_layers": 2}, "unknown tensor model.layers.2."),
        ({"intermediate_size": 24}, "config.json says"),
    ],
)
def test_tensors_that_do_not_fit_the_config(tmp_path, change, message):
    path = Path(share(tmp_path, tiny("llama")))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | change))
    assert message in refusal(path)
