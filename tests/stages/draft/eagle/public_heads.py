"""Small checkpoints in the layouts that public EAGLE heads have."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

VOCAB, HIDDEN, DRAFT = 96, 32, 60

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": 40,
    "max_position_embeddings": 2048,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 1,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.28.1",
    "use_cache": True,
    "vocab_size": VOCAB,
}
"""The keys of SafeAILab's config files."""


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in names}


def speculators(layer: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A config.json of the speculators library."""
    return {
        "architectures": ["Eagle3Speculator"],
        "draft_vocab_size": DRAFT,
        "has_no_defaults_at_init": False,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "some/model"},
        },
        "speculators_model_type": "eagle3",
        "speculators_version": "0.1.0.dev14",
        "target_hidden_size": None,
        "torch_dtype": "bfloat16",
        "transformer_layer_config": layer,
        "transformers_version": "4.53.2",
        **keys,
    }


@dataclass
class Maker:
    """Draws the tensors of a head, named as in a layout."""

    layer: str = "midlayer"
    fc: str = "fc"
    hidden: int = HIDDEN
    target_hidden: int = HIDDEN
    sources: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    dtype: torch.dtype = torch.float16
    w: dict[str, Tensor] = field(default_factory=dict)

    def draw(self, name: str, *shape: int) -> None:
        generator = torch.Generator().manual_seed(len(self.w) + 11)
        middle = 1.0 if name.endswith("norm.weight") or "norm." in name else 0.0
        values = middle + 0.3 * torch.randn(shape, generator=generator)
        self.w[name] = values.to(self.dtype)

    def _decoder(self, width: int) -> None:
        attention, mlp = f"{self.layer}.self_attn", f"{self.layer}.mlp"
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        self.draw(f"{attention}.q_proj.weight", queries, width)
        self.draw(f"{attention}.k_proj.weight", keys, width)
        self.draw(f"{attention}.v_proj.weight", keys, width)
        self.draw(f"{attention}.o_proj.weight", self.hidden, queries)
        self.draw(f"{mlp}.gate_proj.weight", 40, self.hidden)
        self.draw(f"{mlp}.up_proj.weight", 40, self.hidden)
        self.draw(f"{mlp}.down_proj.weight", self.hidden, 40)
        self.draw(f"{self.layer}.post_attention_layernorm.weight", self.hidden)

    def eagle1(self) -> dict[str, Tensor]:
        self.draw(f"{self.fc}.weight", self.hidden, 2 * self.hidden)
        self._decoder(self.hidden)
        return self.w

    def eagle3(self, draft: int = DRAFT) -> dict[str, Tensor]:
        self.draw("fc.weight", self.hidden, self.sources * self.target_hidden)
        self.draw(f"{self.layer}.hidden_norm.weight", self.hidden)
        self.draw(f"{self.layer}.input_layernorm.weight", self.hidden)
        self._decoder(2 * self.hidden)
        self.draw("norm.weight", self.hidden)
        self.draw("lm_head.weight", draft, self.hidden)
        if draft < VOCAB:
            self.w["d2t"], self.w["t2d"] = vocabulary()
        return self.w

    def biases(self, *names: str) -> None:
        for name in names:
            self.draw(f"{name}.bias", len(self.w[f"{name}.weight"]))


def draft_ids() -> Tensor:
    """The target's ids that the heads predict, ascending."""
    order = torch.randperm(VOCAB, generator=torch.Generator().manual_seed(3))
    return order[:DRAFT].sort().values


def vocabulary() -> tuple[Tensor, Tensor]:
    """d2t (offsets) and t2d."""
    ids, t2d = draft_ids(), torch.zeros(VOCAB, dtype=torch.bool)
    t2d[ids] = True
    return ids - torch.arange(DRAFT), t2d


def save_safetensors(folder: Path, config: dict[str, Any], w: dict[str, Tensor]) -> None:
    save_file({k: v.contiguous() for k, v in w.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def save_bin(folder: Path, config: dict[str, Any], w: dict[str, Tensor]) -> None:
    torch.save(w, folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def save_sharded(folder: Path, config: dict[str, Any], w: dict[str, Tensor]) -> None:
    names = sorted(w)
    parts = {"a": names[::2], "b": names[1::2]}
    where = {name: f"model-{part}.safetensors" for part, found in parts.items() for name in found}
    for part, found in parts.items():
        save_file({n: w[n].contiguous() for n in found}, folder / f"model-{part}.safetensors")
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(config, indent=2))
