"""The nearest name to a misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name, or None if nothing is close."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """`; did you mean <prefix><nearest>?`, or nothing."""
    match = nearest(name, known)
    return f"; did you mean {prefix}{match}?" if match else ""
