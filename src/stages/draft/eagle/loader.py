"""Public EAGLE head checkpoints: SafeAILab's EAGLE-1, 2 and 3, SpecForge's exports, speculators."""

from pathlib import Path
from typing import Any

from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.eagle.config import HeadConfig, default_capture
from draftmesh.stages.draft.eagle.files import read_config, read_tensors
from draftmesh.stages.draft.eagle.head import Head

_FROM_TARGET = ("embed_tokens.weight", "verifier_lm_head.weight", "verifier_norm.weight")


def load_head(folder: Path, target: Target) -> Head:
    """A head in evaluation mode on the target's device and in its dtype.

    Raises UserError for damaged files, unknown parts and a head of another model, naming both
    shapes.
    """
    raw, tensors = read_config(folder), read_tensors(folder)
    config = detect(raw, tensors, target, folder)
    check_fit(config, target, folder)
    head = Head(config)
    state = {name: value for name, value in tensors.items() if name not in _FROM_TARGET}
    if config.version == 1:
        state.pop("lm_head.weight", None)
    _check_tensors(head, state, folder)
    head.load_state_dict(state, strict=False)
    return head.to(device=target.device, dtype=target.dtype).eval().requires_grad_(False)


def detect(
    raw: dict[str, Any], tensors: dict[str, Tensor], target: Target, folder: Path
) -> HeadConfig:
    """The head's architecture from its config.json (`raw`) and its tensors."""
    keys = dict(raw.get("transformer_layer_config") or {}) if _speculators(raw, folder) else raw
    version = 3 if "midlayer.hidden_norm.weight" in tensors else 1
    try:
        fc = tensors["fc.weight"]
        gate = tensors["midlayer.mlp.gate_proj.weight"]
        q_rows = tensors["midlayer.self_attn.q_proj.weight"].shape[0]
        k_rows = tensors["midlayer.self_attn.k_proj.weight"].shape[0]
        heads = int(keys["num_attention_heads"])
    except KeyError as error:
        raise UserError(f"draft.path={folder}: not an EAGLE head, {error} is missing") from None
    head_dim = q_rows // heads
    vocab = int(keys.get("vocab_size", target.vocab_size))
    lm_head = tensors.get("lm_head.weight")
    return HeadConfig(
        version=version,
        hidden=fc.shape[0],
        target_hidden=fc.shape[1] - fc.shape[0] if version == 1 else fc.shape[1] // 3,
        intermediate=gate.shape[0],
        heads=heads,
        kv_heads=k_rows // head_dim,
        head_dim=head_dim,
        vocab=vocab,
        draft_vocab=vocab if version == 1 or lm_head is None else lm_head.shape[0],
        capture=_capture(raw, version, target.num_layers),
        eps=float(keys.get("rms_norm_eps", 1e-6)),
        rope_theta=_rope_theta(keys, folder),
        max_position=int(keys.get("max_position_embeddings", 2048)),
        fc_bias="fc.bias" in tensors,
        qkv_bias="midlayer.self_attn.q_proj.bias" in tensors,
        act=str(keys.get("hidden_act", "silu")),
        residual_normed=bool(raw.get("norm_before_residual", False)),
        feed_normed=bool(raw.get("norm_output", False)) and _speculators(raw, folder),
    )


def _speculators(raw: dict[str, Any], folder: Path) -> bool:
    kind = raw.get("speculators_model_type")
    if kind not in (None, "eagle3"):
        raise UserError(f"draft.path={folder}: a speculators {kind} head, not eagle3")
    return kind is not None


def _capture(raw: dict[str, Any], version: int, layers: int) -> tuple[int, ...]:
    """Hugging Face indices. SpecForge's ids, inside `eagle_config`, mean the output of a layer."""
    if version == 1:
        return default_capture(1, layers)
    inner = (raw.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    if inner:
        return tuple(int(i) + 1 for i in inner)
    ids = raw.get("eagle_aux_hidden_state_layer_ids")
    return tuple(int(i) for i in ids) if ids else default_capture(3, layers)


def _rope_theta(keys: dict[str, Any], folder: Path) -> float:
    rope = keys.get("rope_parameters") or keys.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise UserError(f"draft.path={folder}: a head with rope_type={kind} is not supported")
    return float(keys.get("rope_theta") or rope.get("rope_theta") or 10000.0)


def check_fit(config: HeadConfig, target: Target, folder: Path) -> None:
    """Refuse a head that was trained for another model."""
    theirs = (config.target_hidden, config.vocab)
    ours = (target.hidden_size, target.vocab_size)
    if theirs != ours or config.hidden != target.hidden_size:
        raise UserError(
            f"draft.path={folder}: this head is for a model with hidden size {theirs[0]} and "
            f"{theirs[1]} tokens, the model has hidden size {ours[0]} and {ours[1]} tokens; "
            "choose a head of this model"
        )
    wrong = [i for i in config.capture if not 0 <= i <= target.num_layers]
    if wrong:
        raise UserError(
            f"draft.path={folder}: the head reads layer {wrong[0]} of a model with "
            f"{target.num_layers} layers; choose a head of this model"
        )


def _check_tensors(head: Head, state: dict[str, Tensor], folder: Path) -> None:
    own = head.state_dict()
    unknown = sorted(set(state) - set(own))
    missing = sorted(set(own) - set(state) - ({"d2t", "t2d"} if not head.config.reduced else set()))
    if unknown or missing:
        what = f"has the unknown tensor {unknown[0]}" if unknown else f"lacks {missing[0]}"
        raise UserError(f"draft.path={folder}: this EAGLE-{head.config.version} head {what}")
    for name, value in state.items():
        if value.shape != own[name].shape:
            raise UserError(
                f"draft.path={folder}: {name} is {list(value.shape)}, "
                f"config.json says {list(own[name].shape)}"
            )
