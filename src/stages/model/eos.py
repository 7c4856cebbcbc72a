"""The ids that end a completion."""

from collections.abc import Iterator
from typing import Any


def eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Every EOS id of a model, sorted: its generation config's, its config's and its tokenizer's.

    Each of the three may hold an int, a list or nothing. Empty when the model has none.
    """
    sources = (getattr(model, "generation_config", None), text_config(model.config), tokenizer)
    return tuple(sorted({i for source in sources for i in _ids(source)}))


def text_config(config: Any) -> Any:
    """The config of the language model inside a (possibly multimodal) config."""
    return config.get_text_config(decoder=True)


def _ids(source: Any) -> Iterator[int]:
    value = getattr(source, "eos_token_id", None)
    if isinstance(value, int):
        yield value
    elif isinstance(value, list | tuple):
        yield from (int(i) for i in value)
