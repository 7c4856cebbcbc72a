"""Keys and values in the form that MLflow accepts."""

import math
import re
from collections.abc import Mapping

from draftmesh.registry.contracts.tracking import Scalar

KEY_LENGTH = 250
PARAM_LENGTH = 6000
TAG_LENGTH = 8000

_ILLEGAL = re.compile(r"[^\w\-. :/]", re.ASCII)
_CUT = "..."


def clean_key(key: str) -> str:
    """A legal key: other characters than letters, digits and `_-. :/` become `_`.

    MLflow also refuses keys that are not normal paths ("a//b", "../a", "/a").
    """
    parts = _ILLEGAL.sub("_", key).split("/")
    return "/".join(part for part in parts if part.strip(" .")).strip()[:KEY_LENGTH] or "_"


def clean_keys(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Legal keys; two keys that become the same one are told apart by a number."""
    cleaned: dict[str, Scalar] = {}
    for key, value in values.items():
        legal, number = clean_key(key), 2
        while legal in cleaned:
            legal = f"{clean_key(key)[: KEY_LENGTH - 4]}_{number}"
            number += 1
        cleaned[legal] = value
    return cleaned


def text(value: Scalar, limit: int) -> str:
    """A parameter or tag value as text of at most `limit` characters: 4, 0.7, true, none."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    written = str(value)
    return written if len(written) <= limit else written[: limit - len(_CUT)] + _CUT


def params(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Parameters ready for MLflow."""
    return {key: text(value, PARAM_LENGTH) for key, value in clean_keys(values).items()}


def tags(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Tags ready for MLflow."""
    return {key: text(value, TAG_LENGTH) for key, value in clean_keys(values).items()}


def finite(metrics: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Metrics ready for MLflow, and the names left out: NaN and infinities spoil charts."""
    kept: dict[str, float] = {}
    dropped: list[str] = []
    for key, value in clean_keys(metrics).items():
        number = float(value) if isinstance(value, int | float) else math.nan
        if math.isfinite(number):
            kept[key] = number
        else:
            dropped.append(key)
    return kept, dropped
