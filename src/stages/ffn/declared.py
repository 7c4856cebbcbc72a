"""How many experts a model is going to have, as far as its options tell before it is loaded."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from draftmesh.stages.ffn.experts import EXPERTS
from draftmesh.stages.model.architectures import ARCHITECTURES, Size


def declared_experts(model: Any) -> int | None:
    """Experts per block of the model with this Config; 0 for a dense one, None if unknown."""
    if model.name == "smollm2":
        return 0
    if model.name == "tiny" and model.arch in ARCHITECTURES:
        return _named({**ARCHITECTURES[model.arch][1](_size(model)), **model.extra}) or 0
    path = getattr(model, "path", None)
    return _named(_read(Path(path).expanduser() / "config.json")) if path else None


def _named(config: Mapping[str, Any]) -> int | None:
    """None does not mean a dense model: a file may leave out what is a default."""
    text = config.get("text_config") or config
    return next((text[name] for name in EXPERTS if isinstance(text.get(name), int)), None)


def _size(model: Any) -> Size:
    names = [field.name for field in fields(Size) if field.name != "window"]
    return Size(**{name: getattr(model, name) for name in names}, window=model.sliding_window)


def _read(path: Path) -> Mapping[str, Any]:
    """Nothing for what is no local folder of a model; loading it says what is wrong."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
