"""Small draft models that share the target's embedding and LM head and store neither."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.fitting import DRAFT_IDS, check_tensors, load_reduced
from draftmesh.stages.draft.headfiles import dtype_name, read_config, write_head
from draftmesh.stages.draft.reducedhead import ReducedHead
from draftmesh.stages.model import attention
from draftmesh.stages.model.packed import pack

SHARED = "draftmesh_shares"


def llama_config(config: Any, layers: int) -> LlamaConfig:
    """A Llama of some layers with the sizes of a target's Hugging Face config."""
    heads = config.num_attention_heads
    rope = getattr(config, "rope_parameters", None) or {}
    plain = "rope_theta" in rope
    return LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        max_position_embeddings=config.max_position_embeddings,
        rms_norm_eps=getattr(config, "rms_norm_eps", 1e-6),
        rope_parameters=dict(rope) if plain else {"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=False,
        pad_token_id=None,
    )


def bare_llama(config: LlamaConfig) -> LlamaForCausalLM:
    """A Llama with random layers and nothing for an embedding and an LM head."""
    tiny = copy.deepcopy(config)
    tiny.vocab_size, tiny.tie_word_embeddings, tiny.pad_token_id = 1, False, None
    model = LlamaForCausalLM(tiny)
    model.config.vocab_size = config.vocab_size
    model.model.embed_tokens = cast(Any, nn.Identity())
    model.lm_head = cast(Any, nn.Identity())
    return model


class _Embedding(nn.Module):
    """The target's."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def forward(self, tokens: Tensor) -> Tensor:
        return self.target.embed(tokens)


@dataclass(frozen=True)
class Sharing:
    """A bare Llama and the target's ids [Vd], ascending, that it drafts.

    On disk it is a Hugging Face folder without embedding and LM head: config.json says so in
    `draftmesh_shares`, model.safetensors holds the ids beside the layers and the final norm.
    """

    model: LlamaForCausalLM
    ids: Tensor

    def connect(self, target: Target) -> LlamaForCausalLM:
        """The model with the target's embedding and part of its LM head, in the target's dtype and
        on its device, ready to decode."""
        model: Any = self.model
        model.to(device=target.device, dtype=target.dtype).eval().requires_grad_(False)
        model.set_attn_implementation(attention.NAME)
        model.set_input_embeddings(_Embedding(target))
        model.set_output_embeddings(ReducedHead(target, self.ids.to(target.device)))
        pack(model)
        return self.model

    def save(self, folder: Path, dtype: torch.dtype, target: str) -> None:
        """Write the folder; target: the model's name."""
        keys = self.model.config.to_dict() | {
            "architectures": ["LlamaForCausalLM"],
            "dtype": dtype_name(dtype),
            "draftmesh_draft": "small",
            "target": target,
            SHARED: ["embed_tokens", "lm_head"],
        }
        write_head(folder, self.model.state_dict() | {DRAFT_IDS: self.ids}, keys, dtype)

    @staticmethod
    def load(folder: Path, target: Target) -> "Sharing":
        """Read a folder. Raises UserError for damaged files, another kind of folder, and a model
        made for another target, naming both shapes."""
        raw = read_config(folder)
        if not raw.get(SHARED) or raw.get("draftmesh_draft") != "small":
            raise UserError(
                f"draft.path={folder}: not a small model that shares its target's parts"
            )
        state, ids = load_reduced(raw, target, folder)
        model = bare_llama(LlamaConfig.from_dict(raw))
        check_tensors(state, model.state_dict(), folder)
        model.load_state_dict(state)
        return Sharing(model, ids)


def is_sharing(folder: Path) -> bool:
    """Whether a folder holds a model that shares its target's parts."""
    return (folder / "config.json").is_file() and bool(read_config(folder).get(SHARED))
