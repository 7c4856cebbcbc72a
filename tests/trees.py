"""Random trees, and their paths found the slow way."""

from collections.abc import Sequence

from hypothesis import strategies as st

Parents = list[int]


@st.composite
def parents(draw: st.DrawFn, smallest: int = 1, largest: int = 7) -> Parents:
    """The parents of a random forest below the committed prefix (-1), each before its children."""
    size = draw(st.integers(smallest, largest))
    return [draw(st.integers(-1, node - 1)) for node in range(size)]


def path(tree: Sequence[int], node: int) -> list[int]:
    """The nodes from the top down to a node."""
    found = []
    while node >= 0:
        found.append(node)
        node = tree[node]
    return found[::-1]
