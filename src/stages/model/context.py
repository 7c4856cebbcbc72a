"""How many positions a model can use."""

from typing import Any

UNLIMITED = 1 << 20
"""For models that name no limit."""


def context_of(config: Any) -> int:
    """The positions of a text config.

    With LongRoPE those of its short frequencies only: beyond them transformers changes the
    frequencies of every token of a forward, so that the output would depend on drafts and on the
    other prompts of a batch.
    """
    return min([_positions(config), *_switches(config)])


def context_note(config: Any) -> str | None:
    """A line to tell the user where that is fewer than the model names."""
    context, named = context_of(config), _positions(config)
    if context == named:
        return None
    return (
        f"the context is {context} of the model's {named} tokens: beyond, LongRoPE changes the "
        "frequencies of all tokens of a forward, and no draft would be lossless"
    )


def _positions(config: Any) -> int:
    return int(getattr(config, "max_position_embeddings", None) or UNLIMITED)


def _switches(config: Any) -> list[int]:
    """Where frequencies change. `rope_parameters` may hold a set per type of layer."""
    whole = getattr(config, "rope_parameters", None) or {}
    nested = [value for value in whole.values() if isinstance(value, dict)]
    return [
        int(rope.get("original_max_position_embeddings") or config.original_max_position_embeddings)
        for rope in [whole, *nested]
        if rope.get("rope_type") == "longrope"
    ]
