"""The shape of an EAGLE head."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HeadConfig:
    """An EAGLE head's architecture (SafeAILab's EAGLE-1/2 and EAGLE-3, one decoder layer).

    version 1 fuses the token's embedding and the target's last hidden state by `fc` (2H -> H) and
    decodes with the target's LM head. Version 3 fuses several of the target's layers, mostly three,
    by `fc` (3H -> H), widens the attention's input to 2H, and has its own norm and an LM head over
    `draft_vocab` tokens.
    `capture`: hidden-state indices of the target, in the order `fc` reads them (index i < L is the
    input of layer i, L the output of the final norm).
    `rope_scaling`: transformers' rope parameters, `rope_type` among them; None is plain rotary.
    `qk_norm`: each query and key head is normed, as in Qwen3.
    `fc_norm`: each captured layer is normed before `fc` (EAGLE-3.1). `input_norm`: all of them are
    normed together (speculators' norm_before_fc).
    `residual_normed`: the residual is hidden_norm(g) rather than g (speculators'
    norm_before_residual). `feed_normed`: the next step is fed norm(a) rather than a (speculators'
    norm_output). `head_normed`: the LM head reads norm(a) rather than a (SpecForge's norm_output).
    `own_embedding`, `own_lm_head`: the head has its own, unlike the target's; version 3 always has
    an LM head.
    """

    version: int
    hidden: int
    target_hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    draft_vocab: int
    capture: tuple[int, ...]
    eps: float = 1e-5
    rope_theta: float = 10000.0
    max_position: int = 2048
    fc_bias: bool = False
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: bool = False
    act: str = "silu"
    rope_scaling: Mapping[str, Any] | None = None
    fc_norm: bool = False
    input_norm: bool = False
    residual_normed: bool = False
    feed_normed: bool = False
    head_normed: bool = True
    own_embedding: bool = False
    own_lm_head: bool = False

    @property
    def reduced(self) -> bool:
        """The head's LM head covers a part of the target's vocabulary."""
        return self.draft_vocab < self.vocab

    def to_json(self) -> dict[str, Any]:
        """The `config.json` of SafeAILab's layout (which has no word for `feed_normed`)."""
        keys: dict[str, Any] = {
            "architectures": [
                "LlamaForCausalLM" if self.version == 1 else "LlamaForCausalLMEagle3"
            ],
            "model_type": "llama",
            "num_hidden_layers": 1,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": self.act,
            "vocab_size": self.vocab,
            "rms_norm_eps": self.eps,
            "rope_theta": self.rope_theta,
            "max_position_embeddings": self.max_position,
            "qkv_bias": self.qkv_bias,
        }
        if self.rope_scaling is not None:
            keys["rope_scaling"] = dict(self.rope_scaling)
        if self.version == 1:
            return keys | {"bias": self.fc_bias}
        return keys | {
            "draft_vocab_size": self.draft_vocab,
            "target_hidden_size": self.target_hidden,
            "eagle_aux_hidden_state_layer_ids": list(self.capture),
            "fc_norm": self.fc_norm,
            "norm_before_fc": self.input_norm,
            "norm_before_residual": self.residual_normed,
            "norm_output": self.head_normed,
        }


def default_capture(version: int, layers: int) -> tuple[int, ...]:
    """The layers a version reads of a target with `layers` layers, as Hugging Face indices."""
    return (layers,) if version == 1 else (2, layers // 2, layers - 3)
