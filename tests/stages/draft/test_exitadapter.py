"""draft=self with a trained exit."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from harness import VOCAB, Setup, requests, run_engine, tiny, tokens, with_eos

from draftmesh.registry import UserError
from draftmesh.stages.draft.exitadapter import Exit, ExitAdapter, ExitShape


def adapter(
    folder: Path, setup: Setup, exit_layer: int = 2, ids: torch.Tensor | None = None
) -> str:
    """Blocks that add little, and the target's final norm: about as good as no adapter."""
    torch.manual_seed(5)
    shape = ExitShape(setup.target.hidden_size, exit_layer, blocks=2, intermediate=24)
    made = ExitAdapter(shape).double()
    with torch.no_grad():
        for block in made.blocks:
            block.down_proj.weight.mul_(0.1)
        made.norm.weight.copy_(setup.checkpoint.model.model.norm.weight)
    drafted = torch.arange(setup.target.vocab_size) if ids is None else ids
    Exit(made, drafted).save(folder, torch.float64, "tiny", setup.target.vocab_size)
    return str(folder)


@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_tokens_are_plain_decodings(tmp_path, shape, batch_size):
    setup = with_eos(tiny("llama"))
    path = adapter(tmp_path, setup, ids=torch.arange(0, VOCAB, 2))
    draft = {"name": "self", "path": path, "k": 3, "shape": shape}
    result = run_engine(setup, requests(max_new_tokens=30), draft, batch_size=batch_size)
    assert tokens(result) == tokens(run_engine(setup, requests(max_new_tokens=30)))
    assert result.counters.drafted > result.counters.accepted > 0


def test_an_adapter_that_adds_nothing_is_the_untrained_exit(tmp_path):
    setup = with_eos(tiny("llama"))
    path = Path(adapter(tmp_path, setup))
    trained = Exit.load(path, setup.target)
    with torch.no_grad():
        for block in trained.adapter.double().blocks:
            block.down_proj.weight.zero_()
    trained.save(path, torch.float64, "tiny", VOCAB)
    with_adapter = run_engine(setup, requests(), {"name": "self", "path": str(path)})
    without = run_engine(setup, requests(), {"name": "self", "exit_layer": 2})
    assert with_adapter.counters.histogram == without.counters.histogram
    assert with_adapter.counters.accepted == without.counters.accepted


def test_only_its_ids_are_drafted(tmp_path):
    setup = tiny("llama")
    ids = torch.tensor([3, 7, 50])
    path = Path(adapter(tmp_path, setup, ids=ids))
    hidden = torch.randn(2, 4, setup.target.hidden_size, dtype=torch.float64)
    trained = Exit.load(path, setup.target)
    logits = trained.connect(setup.target)(hidden)
    assert logits.shape == (2, 4, VOCAB)
    assert torch.isinf(logits).sum() == 2 * 4 * (VOCAB - 3)
    expected = setup.target.lm_head(trained.adapter(hidden))[..., ids]
    assert torch.allclose(logits[..., ids], expected)


def refusal(node, setup=None):
    with pytest.raises(UserError) as caught:
        run_engine(setup or tiny("llama"), requests(), {"name": "self"} | node)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_options_that_contradict_the_adapter(tmp_path):
    path = adapter(tmp_path, tiny("llama"))
    assert "draft.exit_layer=1" in refusal({"path": path, "exit_layer": 1})
    assert "draft.skip_layers" in refusal({"path": path, "skip_layers": [1]})
    same = {"name": "self", "path": path, "exit_layer": 2}
    assert run_engine(tiny("llama"), requests(), same).counters.drafted


def test_another_models_adapter_is_refused_with_both_shapes(tmp_path):
    path = adapter(tmp_path, tiny("llama"))
    message = refusal({"path": path}, tiny("llama", hidden_size=16, heads=2, kv_heads=1))
    assert message.startswith(f"draft.path={path}")
    assert "hidden size 32 and 96 tokens" in message
    assert "hidden size 16 and 96 tokens" in message
    assert "reads layer 2 of a model with 2 layers" in refusal(
        {"path": path}, tiny("llama", layers=2)
    )


def test_a_half_written_folder_is_named(tmp_path):
    path = Path(adapter(tmp_path / "good", tiny("llama")))
    whole = (path / "model.safetensors").read_bytes()
    half = shutil.copytree(path, tmp_path / "half")
    (half / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    assert "damaged or incomplete" in refusal({"path": str(half)})
    (half / "model.safetensors").unlink()
    assert str(half) in refusal({"path": str(half)})
    assert "no such folder" in refusal({"path": str(tmp_path / "nowhere")})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_blocks": 3}, "lacks blocks.2."),
        ({"num_blocks": 1}, "unknown tensor blocks.1."),
        ({"intermediate_size": 12}, "config.json says"),
        ({"vocab_size": 3}, "3 tokens"),
        ({"draftmesh_draft": "small"}, "not an exit adapter"),
    ],
)
def test_a_config_that_does_not_fit(tmp_path, change, message):
    path = Path(adapter(tmp_path, tiny("llama")))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | change))
    assert message in refusal({"path": str(path)})
