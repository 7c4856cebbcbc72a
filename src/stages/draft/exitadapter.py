"""A trained exit: from the hidden state after a layer to a stand-in for the final one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.fitting import DRAFT_IDS, check_tensors, load_reduced
from draftmesh.stages.draft.headfiles import dtype_name, read_config, write_head
from draftmesh.stages.draft.reducedhead import ReducedHead


@dataclass(frozen=True)
class ExitShape:
    """hidden H; the layers that run before; residual blocks and their inner width."""

    hidden: int
    exit_layer: int
    blocks: int
    intermediate: int
    eps: float = 1e-6


class Block(nn.Module):
    """A residual feed-forward block: x + down(silu(gate(norm(x))) * up(norm(x)))."""

    def __init__(self, shape: ExitShape) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(shape.hidden, shape.eps)
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        normed = self.norm(hidden)
        inner = functional.silu(self.gate_proj(normed)) * self.up_proj(normed)
        return hidden + self.down_proj(inner)


class ExitAdapter(nn.Module):
    """Hidden states [..., H] after `exit_layer` layers -> what the target's LM head reads."""

    def __init__(self, shape: ExitShape) -> None:
        super().__init__()
        self.shape = shape
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.blocks))
        self.norm = nn.RMSNorm(shape.hidden, shape.eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        for block in self.blocks:
            hidden = block(hidden)
        normed: Tensor = self.norm(hidden)
        return normed


@dataclass(frozen=True)
class Exit:
    """An adapter and the target's ids [Vd], ascending, that it drafts with the target's LM head."""

    adapter: ExitAdapter
    ids: Tensor

    def connect(self, target: Target) -> nn.Module:
        """Hidden states [..., H] after the exit layer -> logits [..., V], in the target's dtype and
        on its device."""
        whole = nn.Sequential(self.adapter, ReducedHead(target, self.ids.to(target.device)))
        return whole.to(device=target.device, dtype=target.dtype).eval().requires_grad_(False)

    def save(self, folder: Path, dtype: torch.dtype, target: str, vocab: int) -> None:
        """Write config.json and model.safetensors; target, vocab: the model's name and V."""
        shape = self.adapter.shape
        keys = {
            "draftmesh_draft": "self",
            "draftmesh_shares": ["lm_head"],
            "target": target,
            "hidden_size": shape.hidden,
            "vocab_size": vocab,
            "exit_layer": shape.exit_layer,
            "num_blocks": shape.blocks,
            "intermediate_size": shape.intermediate,
            "rms_norm_eps": shape.eps,
            "dtype": dtype_name(dtype),
        }
        write_head(folder, self.adapter.state_dict() | {DRAFT_IDS: self.ids}, keys, dtype)

    @staticmethod
    def load(folder: Path, target: Target) -> "Exit":
        """Read a folder. Raises UserError for damaged files, another kind of folder, and an adapter
        of another model, naming both shapes."""
        raw = read_config(folder)
        if raw.get("draftmesh_draft") != "self":
            raise UserError(f"draft.path={folder}: not an exit adapter")
        state, ids = load_reduced(raw, target, folder)
        adapter = ExitAdapter(_shape(raw, target, folder))
        check_tensors(state, adapter.state_dict(), folder)
        adapter.load_state_dict(state)
        return Exit(adapter, ids)


def _shape(raw: dict[str, Any], target: Target, folder: Path) -> ExitShape:
    try:
        shape = ExitShape(
            target.hidden_size,
            int(raw["exit_layer"]),
            int(raw["num_blocks"]),
            int(raw["intermediate_size"]),
            float(raw.get("rms_norm_eps", 1e-6)),
        )
    except KeyError as error:
        raise UserError(f"draft.path={folder}: config.json lacks {error}") from None
    if not 1 <= shape.exit_layer < target.num_layers:
        raise UserError(
            f"draft.path={folder}: the adapter reads layer {shape.exit_layer} of a model with "
            f"{target.num_layers} layers; choose an adapter of this model"
        )
    return shape
