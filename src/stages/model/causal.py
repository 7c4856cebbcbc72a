"""Which Hugging Face class decodes a checkpoint, if any does."""

from typing import Any

from transformers import AutoModelForCausalLM

from draftmesh.registry.errors import UserError
from draftmesh.stages.model.options import LoadOptions

_DECODERS = ("CausalLM", "LMHead", "ConditionalGeneration")


def causal_class(config: Any, what: str, options: LoadOptions) -> type | None:
    """The class that AutoModelForCausalLM will build, None when it comes from remote code.

    Raises UserError for checkpoints (`what`) of other tasks: encoders, classifiers, bare trunks.
    """
    remote = getattr(config, "auto_map", None) or {}
    if options.trust_remote_code and "AutoModelForCausalLM" in remote:
        return None
    named = getattr(config, "architectures", None) or []
    mapping: Any = AutoModelForCausalLM._model_mapping
    decodes = not named or any(mark in name for name in named for mark in _DECODERS)
    if type(config) not in mapping or config.is_encoder_decoder or not decodes:
        it = ", ".join(named) or config.model_type
        raise UserError(f"{what} is no decoder-only causal LM but {it}")
    found: type = mapping[type(config)]
    return found


def attention_name(asked: str, cls: type | None) -> str | None:
    """The attention implementation to ask transformers for; None leaves the choice to it.

    `auto` is DraftMesh's own for every class whose attention can be exchanged.
    """
    exchangeable = bool(getattr(cls, "_supports_attention_backend", False))
    if asked == "auto":
        return "draftmesh" if exchangeable else None
    if asked == "draftmesh" and not exchangeable:
        named = cls.__name__ if cls else "a model of remote code"
        raise UserError(f"model.attention=draftmesh does not fit {named}; use model.attention=auto")
    return asked
