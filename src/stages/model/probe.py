"""What a loaded model can be trusted with, found out by trying it on a few tokens."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.stages.model.attention import NAME
from draftmesh.stages.model.cache import SlotCache
from draftmesh.stages.model.target import HFTarget

# Largest allowed difference of log-probabilities; a wrong mask or position changes them by far
# more. In float64 too, some of transformers' models compute their softmax in float32.
TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-2, torch.float16: 0.3, torch.bfloat16: 0.6}
KINDS = {"full_attention", "sliding_attention"}


@dataclass(frozen=True)
class Abilities:
    """trees: a tree of tokens in one forward gives what its paths give one by one.
    resume: a forward stopped at a layer and resumed there gives what a whole forward gives.
    obstacle: why the model cannot be used with a draft at all, as the end of a sentence that
    starts with the model's name; None if it can.
    """

    trees: bool
    resume: bool
    obstacle: str | None = None


def examine(model: Any) -> Abilities:
    """What a loaded model can be used for.

    Raises UserError if it should be able to draft, but our forwards disagree with its own.
    """
    obstacle = _obstacle(model)
    return probe(HFTarget(model)) if obstacle is None else Abilities(False, False, obstacle)


def _obstacle(model: Any) -> str | None:
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or KINDS)
    if model._is_stateful or kinds & {"linear_attention", "conv", "mamba"}:
        return "has recurrent layers, which cannot take rejected tokens back"
    if other := sorted(kinds - KINDS):
        return f"has layers of type {', '.join(other)}, whose masks draftmesh cannot make"
    if not model._supports_attention_backend:
        return "computes its attention where draftmesh's masks cannot reach it"
    asked = config._attn_implementation
    if asked != NAME:
        return f"runs with transformers' own attention (model.attention={asked})"
    return None


@torch.inference_mode()
def probe(target: HFTarget) -> Abilities:
    """Compare our forwards with transformers' own on one short sequence.

    Raises UserError if even a chain of tokens disagrees.
    """
    vocab = min(target.vocab_size, 1000)
    tokens = (torch.arange(7, device=target.device) * 37 + 11) % vocab
    limit = TOLERANCE[target.dtype]
    prefix, path = tokens[:4], tokens[4:6]
    reference = _reference(target, torch.cat([prefix, path]))
    cache = target.new_cache(1, 16)
    target.forward(prefix[None], cache)
    cache.advance(torch.tensor([4]))
    chain = target.forward(path[None], cache).logits
    assert chain is not None
    if not _distance(chain[0], reference[4:]) <= limit:
        raise UserError(
            f"{type(target.model).__name__} does not decode correctly with draftmesh's attention "
            "and cache: set model.attention=eager and draft=none"
        )
    if not _windows_told(target):
        return Abilities(False, False, "does not tell its attention how far its layers look back")
    return Abilities(
        trees=_distance(_tree(target, cache, path, tokens[6:]), chain[0]) <= limit,
        resume=_distance(_resumed(target, cache, path), chain[0]) <= limit,
    )


def _windows_told(target: HFTarget) -> bool:
    window = getattr(target.config, "sliding_window", None)
    if not window or window >= target.context:
        return True
    kinds = getattr(target.config, "layer_types", None) or ["sliding_attention"]
    return "sliding_attention" not in kinds or window in target.windows


def _reference(target: HFTarget, tokens: Tensor) -> Tensor:
    ours = target.config._attn_implementation
    other = "sdpa" if getattr(target.model, "_supports_sdpa", False) else "eager"
    target.model.set_attn_implementation(other)
    try:
        logits: Tensor = target.model(tokens[None], use_cache=False).logits[0]
    finally:
        target.model.set_attn_implementation(ours)
    return logits


def _tree(target: HFTarget, cache: SlotCache, path: Tensor, other: Tensor) -> Tensor:
    """The path's logits when a sibling stands between its two tokens."""
    tokens = torch.cat([path[:1], other, path[1:]])[None]
    parents = torch.tensor([[-1, 0, 0]], device=tokens.device)
    logits = target.forward(tokens, cache, parents=parents).logits
    assert logits is not None
    return logits[0, [0, 2]]


def _resumed(target: HFTarget, cache: SlotCache, path: Tensor) -> Tensor:
    half = max(1, target.num_layers // 2)
    front = target.forward(path[None], cache, layers=range(half))
    if half == target.num_layers:
        return path.new_full((1, 1), 1e9).double()
    back = target.forward(front.hidden, cache, layers=range(half, target.num_layers))
    assert back.logits is not None
    return back.logits[0]


def _distance(logits: Tensor, reference: Tensor) -> float:
    if logits.shape != reference.shape:
        return float("inf")
    work = torch.float64 if logits.dtype == torch.float64 else torch.float32
    ours, theirs = logits.to(work).log_softmax(-1), reference.to(work).log_softmax(-1)
    likely = theirs > theirs.max(-1, keepdim=True).values - 5
    return float((ours - theirs)[likely].abs().max())
