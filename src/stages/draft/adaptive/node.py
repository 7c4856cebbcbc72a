"""draft.k=auto, before a draft is built."""

from collections.abc import Mapping
from typing import Any

AUTO = "auto"
LONGEST_CHAIN = 16
DEEPEST_TREE = 8
"""How far `auto` may go."""


def is_automatic(node: Mapping[str, Any]) -> bool:
    """Whether a draft's node says k=auto."""
    return node.get("k") == AUTO


def at_most(node: Mapping[str, Any], context: int = 1 << 20) -> dict[str, Any]:
    """The same node with the largest k that `auto` may choose in place of `auto`; context: that of
    the target, which drafts are shorter than."""
    if not is_automatic(node):
        return dict(node)
    given = [len(node.get("widths") or []), *map(len, node.get("paths") or [])]
    chain = node.get("shape", "chain") == "chain"
    most = LONGEST_CHAIN if chain else DEEPEST_TREE
    return {**node, "k": max(min(most, context - 1), 1, *given)}
