"""Public Medusa checkpoints become heads for a target."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.fitting import check_sizes
from draftmesh.stages.draft.headfiles import read_config
from draftmesh.stages.draft.medusa.base import check_base
from draftmesh.stages.draft.medusa.heads import MedusaHeads
from draftmesh.stages.draft.medusa.tensors import Parts, read_parts


def load_heads(folder: Path, target: Target) -> MedusaHeads:
    """Heads in evaluation mode on the target's device and in its dtype.

    How many there are is counted in the file: published configs are wrong about it. Raises
    UserError for damaged or incomplete files, and for heads of another model, naming both shapes.
    """
    raw, parts = read_config(folder), read_parts(folder)
    weight, bias = _stacked(parts, "weight", folder), None
    if any(kind == "bias" for kind, *_ in parts.block):
        bias = _stacked(parts, "bias", folder)
    lm_heads = _lm_heads(parts, weight.shape[1], folder)
    _check_fit(weight, lm_heads, parts.token_map, raw, target, folder)
    if parts.merged:
        check_base(parts.merged, target, folder)
    heads = MedusaHeads(weight, bias, lm_heads, parts.token_map, target.vocab_size)
    return heads.to(device=target.device, dtype=target.dtype).eval().requires_grad_(False)


def _stacked(parts: Parts, kind: str, folder: Path) -> Tensor:
    """The blocks' weights [L, K, H, H] or biases [L, K, H]."""
    heads = 1 + max([head for _, head, _ in parts.block] + list(parts.own))
    layers = 1 + max(layer for _, _, layer in parts.block)
    try:
        rows = [[parts.block[kind, h, j] for h in range(heads)] for j in range(layers)]
    except KeyError as error:
        _, head, layer = error.args[0]
        raise UserError(
            f"draft.path={folder}: incomplete: head {head} of {heads} lacks the {kind} of its "
            f"block {layer}"
        ) from None
    _same_size([value for row in rows for value in row], kind, folder)
    return torch.stack([torch.stack(row) for row in rows])


def _lm_heads(parts: Parts, heads: int, folder: Path) -> Tensor | None:
    """LM heads in the file [K or 1, Vd, H]; None if they are the target's."""
    if parts.shared is not None:
        found = [parts.shared]
    elif parts.own:
        missing = [head for head in range(heads) if head not in parts.own]
        if missing:
            raise UserError(
                f"draft.path={folder}: incomplete: head {missing[0]} of {heads} lacks its LM head"
            )
        found = [parts.own[head] for head in range(heads)]
    else:
        return None
    _same_size(found, "LM head", folder)
    some = parts.token_map
    if some is not None and len(found[0]) > max(len(some), int(some.max())):
        # vLLM takes whole LM heads beside a token map, too, and picks their rows.
        found = [value[some] for value in found]
    return torch.stack(found)


def _same_size(values: list[Tensor], what: str, folder: Path) -> None:
    sizes = sorted({tuple(value.shape) for value in values})
    if len(sizes) > 1:
        raise UserError(
            f"draft.path={folder}: its heads' {what}s differ in shape: {sizes[0]} and {sizes[1]}"
        )


def _check_fit(
    weight: Tensor,
    lm_heads: Tensor | None,
    some: Tensor | None,
    raw: dict[str, Any],
    target: Target,
    folder: Path,
) -> None:
    """Refuse heads that were trained for another model."""
    vocab = int(raw.get("vocab_size", target.vocab_size))
    if some is not None:
        vocab = max(vocab, int(some.max()) + 1)
    elif lm_heads is not None:
        vocab = lm_heads.shape[1]
    hidden = weight.shape[-1]
    check_sizes(hidden, vocab, target, folder, "these heads are", "heads")
    expected = (vocab if some is None else len(some), hidden)
    if lm_heads is not None and lm_heads.shape[1:] != expected:
        raise UserError(
            f"draft.path={folder}: its LM heads are {list(lm_heads.shape[1:])}, its blocks and "
            f"token map need {list(expected)}"
        )
