"""Mistakes found before anything heavy is loaded."""

from collections.abc import Mapping
from typing import Any


def check_options(cfg: Mapping[str, Any]) -> None:
    """Raises UserError, naming the option to change, for what cannot work."""
