"""Small checkpoints in each public layout, and what their heads compute, the slow way."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import silu

HIDDEN, VOCAB = 32, 96
TOKEN_MAP = torch.tensor([3, 90, 0, 41, 7, 12, 60, 95, 2, 33])

State = dict[str, Tensor]


def random(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64) * 0.3


def blocks(name: str, heads: int, layers: int, bias: bool = True, hidden: int = HIDDEN) -> State:
    state = {}
    for h in range(heads):
        for j in range(layers):
            state[name.format(h=h, j=j) + ".weight"] = random(hidden, hidden, seed=10 * h + j)
            if bias:
                state[name.format(h=h, j=j) + ".bias"] = random(hidden, seed=500 + 10 * h + j)
    return state


def own(name: str, heads: int, rows: int = VOCAB) -> State:
    return {name.format(h=h): random(rows, HIDDEN, seed=900 + h) for h in range(heads)}


def write(folder: Path, config: dict[str, object], state: State, file: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if file.endswith(".safetensors"):
        save_file(state, folder / file)
    else:
        torch.save(state, folder / file)
    return folder


def v1(folder: Path, heads: int = 5, layers: int = 1) -> State:
    """FasterDecoding/medusa-vicuna-*-v1.3, whose config is wrong about the number of heads."""
    state = blocks("{h}.{j}.linear", heads, layers) | own(f"{{h}}.{layers}.weight", heads)
    config = {"medusa_num_heads": 2, "medusa_num_layers": layers, "base_model_name_or_path": "x"}
    write(folder, config, state, "medusa_lm_head.pt")
    return state


def v2(folder: Path, heads: int = 3, layers: int = 2) -> State:
    """train_legacy and TGI: no LM heads. Its layers are one module, stored again and again."""
    state = blocks("{h}.{j}.linear", heads, layers)
    config = {"medusa_num_heads": heads, "medusa_num_layers": layers, "version": "2"}
    write(folder, config, state, "medusa_lm_head.safetensors")
    return state


def merged(folder: Path, model: object, file: str = "model.safetensors") -> State:
    """FasterDecoding/medusa-1.0-*: the heads inside the fine-tuned model's checkpoint."""
    model.save_pretrained(folder)
    heads = blocks("medusa_head.{h}.{j}.linear", 3, 1) | own("medusa_head.{h}.1.weight", 3)
    base = {name: value.clone() for name, value in model.state_dict().items()}
    (folder / "model.safetensors").unlink()
    config = json.loads((folder / "config.json").read_text()) | {"medusa_num_heads": 3}
    write(folder, config, base | heads, file)
    return {name.removeprefix("medusa_head."): value for name, value in heads.items()}


def vllm(folder: Path, *, bias: bool, shared: bool, reduced: bool, prefix: str = "") -> State:
    """vLLM's converted checkpoints."""
    size = len(TOKEN_MAP) if reduced else VOCAB
    state = blocks("blocks.{h}.layers.{j}", 3, 2, bias)
    state |= own("lm_head.weight", 1, size) if shared else own("lm_heads.{h}.weight", 3, size)
    if reduced:
        state["token_map"] = TOKEN_MAP
    config = {
        "model_type": "medusa",
        "hidden_size": HIDDEN,
        "vocab_size": VOCAB,
        "num_heads": 3,
        "num_hidden_layers": 2,
        "truncated_vocab_size": size,
        "medusa_fc_bias": bias,
        "original_lm_head": shared,
    }
    write(folder, config, {prefix + k: v for k, v in state.items()}, "model.safetensors")
    return state


def logits(state: State, hidden: Tensor, head: int, name: str, lm_head: Tensor) -> Tensor:
    """One head on one hidden state [H], from the file's tensors -> logits [Vd]."""
    x, layer = hidden, 0
    while (key := name.format(h=head, j=layer)) + ".weight" in state:
        y = state[key + ".weight"] @ x
        x = x + silu(y + state.get(key + ".bias", torch.zeros_like(y)))
        layer += 1
    return lm_head @ x
