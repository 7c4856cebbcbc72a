"""Which head a checkpoint holds, from its config.json and its tensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers.activations import ACT2FN

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.eagle.config import HeadConfig, default_capture
from draftmesh.stages.draft.eagle.rotary import SCALINGS

Keys = Mapping[str, Any]

_ATTENTION = "midlayer.self_attn."


def detect(raw: Keys, tensors: Mapping[str, Tensor], target: Target, folder: Path) -> HeadConfig:
    """The head's architecture from its config.json (`raw`) and its tensors' canonical names.

    Widths and optional parts are taken from the tensors where they show; what the config claims
    beside that is checked when the tensors are loaded. Raises UserError for what is no EAGLE head.
    """
    try:
        return _detect(raw, tensors, target, folder)
    except KeyError as error:
        raise UserError(f"draft.path={folder}: not an EAGLE head, {error} is missing") from None
    except (TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise UserError(
            f"draft.path={folder}: config.json does not describe an EAGLE head ({error})"
        ) from None


def _detect(raw: Keys, tensors: Mapping[str, Tensor], target: Target, folder: Path) -> HeadConfig:
    speculators = _speculators(raw, folder)
    keys: Keys = raw["transformer_layer_config"] if speculators else raw
    version = 3 if "midlayer.hidden_norm.weight" in tensors else 1
    fc, gate = tensors["fc.weight"], tensors["midlayer.mlp.gate_proj.weight"]
    heads = int(keys["num_attention_heads"])
    head_dim = tensors[f"{_ATTENTION}q_proj.weight"].shape[0] // heads
    vocab = int(keys.get("vocab_size", target.vocab_size))
    capture, width = _inputs(raw, version, fc, target)
    flags = {**(raw.get("eagle_config") or {}), **raw}
    return HeadConfig(
        version=version,
        hidden=fc.shape[0],
        target_hidden=width,
        intermediate=gate.shape[0],
        heads=heads,
        kv_heads=tensors[f"{_ATTENTION}k_proj.weight"].shape[0] // head_dim,
        head_dim=head_dim,
        vocab=vocab,
        draft_vocab=vocab if version == 1 else tensors["lm_head.weight"].shape[0],
        capture=capture,
        eps=float(keys.get("rms_norm_eps", 1e-6)),
        rope_theta=_rope_theta(keys),
        rope_scaling=_rope_scaling(keys, folder),
        max_position=int(keys.get("max_position_embeddings", 2048)),
        fc_bias="fc.bias" in tensors or (version == 1 and raw.get("bias") is True),
        qkv_bias=f"{_ATTENTION}q_proj.bias" in tensors or raw.get("qkv_bias") is True,
        o_bias=f"{_ATTENTION}o_proj.bias" in tensors,
        qk_norm=f"{_ATTENTION}q_norm.weight" in tensors,
        act=_activation(keys, folder),
        fc_norm="fc_norm.0.weight" in tensors or bool(flags.get("fc_norm")),
        input_norm="input_norm.weight" in tensors or bool(flags.get("norm_before_fc")),
        residual_normed=bool(flags.get("norm_before_residual")),
        # One key, two meanings: SpecForge's default is true, and it never changes what is fed back.
        feed_normed=speculators and bool(flags.get("norm_output")),
        head_normed=speculators or flags.get("norm_output") is not False,
        own_embedding="embed_tokens.weight" in tensors,
        own_lm_head=version == 1 and "lm_head.weight" in tensors,
    )


def _speculators(raw: Keys, folder: Path) -> bool:
    kind = raw.get("speculators_model_type")
    if kind not in (None, "eagle", "eagle3"):
        raise UserError(f"draft.path={folder}: a speculators {kind} head, not eagle or eagle3")
    return kind is not None


def _inputs(raw: Keys, version: int, fc: Tensor, target: Target) -> tuple[tuple[int, ...], int]:
    """The captured layers as Hugging Face indices, and their width.

    SpecForge's ids, inside `eagle_config`, mean the output of a layer.
    """
    if version == 1:
        return default_capture(1, target.num_layers), fc.shape[1] - fc.shape[0]
    inner = (raw.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    ids = raw.get("eagle_aux_hidden_state_layer_ids")
    if inner:
        capture = tuple(int(i) + 1 for i in inner)
    elif ids:
        capture = tuple(int(i) for i in ids)
    else:
        capture = default_capture(3, target.num_layers)
    width, rest = divmod(fc.shape[1], len(capture))
    if rest:
        raise ValueError(f"fc reads {fc.shape[1]} values of {len(capture)} layers")
    return capture, width


def _activation(keys: Keys, folder: Path) -> str:
    name = str(keys.get("hidden_act", "silu"))
    if name not in ACT2FN:
        raise UserError(f"draft.path={folder}: hidden_act={name} is not known to transformers")
    return name


def _rope(keys: Keys) -> Keys:
    """What transformers 5 (rope_parameters) and 4 (rope_scaling) say."""
    return keys.get("rope_parameters") or keys.get("rope_scaling") or {}


def _rope_theta(keys: Keys) -> float:
    """10000 where nothing is said: a head does not inherit the target's."""
    return float(keys.get("rope_theta") or _rope(keys).get("rope_theta") or 10000.0)


def _rope_scaling(keys: Keys, folder: Path) -> dict[str, Any] | None:
    rope = dict(_rope(keys))
    kind = rope.pop("type", None)
    kind = rope.pop("rope_type", None) or kind or "default"
    rope.pop("rope_theta", None)
    if kind == "default":
        return None
    if kind not in SCALINGS:
        raise UserError(
            f"draft.path={folder}: a head with rope_type={kind}; known are {', '.join(SCALINGS)}"
        )
    return {"rope_type": kind, **rope}
