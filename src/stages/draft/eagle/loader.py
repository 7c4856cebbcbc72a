"""Public EAGLE head checkpoints: SafeAILab's EAGLE-1, 2 and 3, SpecForge's exports, speculators."""

from pathlib import Path

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.eagle.config import HeadConfig
from draftmesh.stages.draft.eagle.detect import detect
from draftmesh.stages.draft.eagle.draftvocabulary import use_offsets
from draftmesh.stages.draft.eagle.files import read_tensors
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.rotary import frequencies
from draftmesh.stages.draft.eagle.shared import drop_copies
from draftmesh.stages.draft.fitting import check_sizes
from draftmesh.stages.draft.headfiles import read_config

_UNUSED = ("verifier_lm_head.weight", "verifier_norm.weight")
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def load_head(folder: Path, target: Target) -> Head:
    """A head in evaluation mode on the target's device and in its dtype.

    Called by every rank of a tensor-parallel group. Raises UserError for damaged files, unknown
    parts and a head of another model, naming both shapes.
    """
    raw, state = read_config(folder), read_tensors(folder)
    state = {k: v for k, v in state.items() if k not in _UNUSED and "rotary_emb" not in k}
    drop_copies(state, target)
    config = detect(raw, state, target, folder)
    _check_fit(config, target, folder)
    _check_rope(config, folder)
    if config.version == 3:
        use_offsets(state, config, folder)
    with torch.device("meta"):
        head = Head(config)
    _check_tensors(head, state, folder)
    head.load_state_dict(state, assign=True)
    return head.to(device=target.device, dtype=target.dtype).eval().requires_grad_(False)


def _check_fit(config: HeadConfig, target: Target, folder: Path) -> None:
    """Refuse a head that was trained for another model."""
    sizes = (config.target_hidden, config.vocab)
    check_sizes(*sizes, target, folder, "this head is", "a head")
    if config.hidden != target.hidden_size and not config.own_embedding:
        raise UserError(
            f"draft.path={folder}: the head's hidden size is {config.hidden}, the model's "
            f"{target.hidden_size}, so it needs embed_tokens.weight of its own, which it lacks"
        )
    wrong = [i for i in config.capture if not 0 <= i <= target.num_layers]
    if wrong:
        raise UserError(
            f"draft.path={folder}: the head reads layer {wrong[0]} of a model with "
            f"{target.num_layers} layers; choose a head of this model"
        )


def _check_rope(config: HeadConfig, folder: Path) -> None:
    try:
        frequencies(config)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        reason = " ".join(str(error.args[0]).split())
        raise UserError(
            f"draft.path={folder}: config.json's rope cannot be used: {reason}"
        ) from None


def _check_tensors(head: Head, state: dict[str, Tensor], folder: Path) -> None:
    own = head.state_dict()
    unknown, missing = sorted(set(state) - set(own)), sorted(set(own) - set(state))
    if unknown or missing:
        what = f"has the unknown tensor {unknown[0]}" if unknown else f"lacks {missing[0]}"
        raise UserError(f"draft.path={folder}: this EAGLE-{head.config.version} head {what}")
    for name, value in state.items():
        _check_tensor(name, value, own[name], folder)


def _check_tensor(name: str, value: Tensor, own: Tensor, folder: Path) -> None:
    if value.shape != own.shape:
        raise UserError(
            f"draft.path={folder}: {name} is {list(value.shape)}, config.json and the other "
            f"tensors make it {list(own.shape)}"
        )
    if own.is_floating_point() and value.dtype not in _DTYPES:
        raise UserError(
            f"draft.path={folder}: {name} holds {value.dtype}; quantised heads cannot be used"
        )
    if not bool(value.isfinite().all()):
        raise UserError(f"draft.path={folder}: {name} holds NaN or infinite values")
