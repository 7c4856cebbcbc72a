"""Writing Medusa heads: Medusa's own layout, and vLLM's."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from draftmesh.stages.draft.headfiles import dtype_name, write_head
from draftmesh.stages.draft.medusa.heads import MedusaHeads


def save_medusa(
    heads: MedusaHeads, folder: Path, dtype: torch.dtype, target: str, extra: dict[str, Any]
) -> None:
    """Medusa's layout: v1 with LM heads in the file, v2 (`"version": "2"`) with the target's.

    Beside a reduced vocabulary lie its `token_map` and, of the target's LM head, nothing.
    target: the model's name or Hub id; `extra` keys go into config.json.
    """
    state = _blocks(heads, "{head}.{layer}.linear.{kind}")
    if heads.lm_heads is not None:
        for head, rows in enumerate(heads.lm_heads.expand(heads.count, -1, -1)):
            state[f"{head}.{heads.layers}.weight"] = rows
    config = {
        "medusa_num_heads": heads.count,
        "medusa_num_layers": heads.layers,
        "base_model_name_or_path": target,
        "hidden_size": heads.hidden,
        "vocab_size": heads.vocab,
    }
    if heads.lm_heads is None:
        config["version"] = "2"
    _write(folder, "medusa_lm_head.safetensors", heads, state, config | extra, dtype)


def save_vllm(
    heads: MedusaHeads, folder: Path, dtype: torch.dtype, rows: Tensor, extra: dict[str, Any]
) -> None:
    """vLLM's layout, which holds an LM head: the heads' own, else the target's `rows` [Vd, H]."""
    state = _blocks(heads, "blocks.{head}.layers.{layer}.{kind}")
    lm_heads = rows[None] if heads.lm_heads is None else heads.lm_heads
    if len(lm_heads) == 1:
        state["lm_head.weight"] = lm_heads[0]
    else:
        state |= {f"lm_heads.{head}.weight": rows for head, rows in enumerate(lm_heads)}
    config = {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": heads.hidden,
        "vocab_size": heads.vocab,
        "num_heads": heads.count,
        "num_hidden_layers": heads.layers,
        "truncated_vocab_size": heads.draft_vocab,
        "medusa_fc_bias": heads.bias is not None,
        "original_lm_head": len(lm_heads) == 1,
    }
    _write(folder, "model.safetensors", heads, state, config | extra, dtype)


def _blocks(heads: MedusaHeads, name: str) -> dict[str, Tensor]:
    """The residual blocks' tensors."""
    kinds = {"weight": heads.weight, "bias": heads.bias}
    return {
        name.format(head=head, layer=layer, kind=kind): values[layer, head]
        for kind, values in kinds.items()
        if values is not None
        for layer in range(heads.layers)
        for head in range(heads.count)
    }


def _write(
    folder: Path,
    file: str,
    heads: MedusaHeads,
    state: dict[str, Tensor],
    config: dict[str, Any],
    dtype: torch.dtype,
) -> None:
    if heads.token_map is not None:
        state = state | {"token_map": heads.token_map}
    write_head(folder, state, config | {"torch_dtype": dtype_name(dtype)}, dtype, file)
