"""Only the first layers of a model, for what the whole would not fit into."""

from typing import Any

from draftmesh.registry.errors import UserError


def keep_first_layers(config: Any, layers: int) -> None:
    """Make a transformers configuration describe the first `layers` layers, in place.

    Lists with one entry per layer (layer types, windows) are cut too. Raises UserError for a number
    of layers that the model does not have.
    """
    text = config.get_text_config()
    total = text.num_hidden_layers
    if not 1 <= layers <= total:
        raise UserError(f"model.layers={layers}: must be from 1 to the model's {total} layers")
    for name, value in list(vars(text).items()):
        if isinstance(value, list) and len(value) == total:
            setattr(text, name, value[:layers])
    text.num_hidden_layers = layers
