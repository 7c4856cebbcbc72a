"""The n-grams of one growing sequence, found by the token before them."""

from collections import defaultdict


class NGramPool:
    """An append costs O(1), a look-up O(window * k), whatever the sequence's length."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._ends: dict[int, list[int]] = defaultdict(list)

    def extend(self, tokens: list[int]) -> None:
        """Append tokens."""
        for token in tokens:
            self.tokens.append(token)
            self._ends[token].append(len(self.tokens))

    def continuations(self, k: int, branches: int, window: int) -> list[list[int]]:
        """Up to `branches` different n-grams of at most k tokens that followed the last token.

        The latest come first; one that only repeats the beginning of a later one is left out.
        """
        if not self.tokens or k < 1:
            return []
        found: list[list[int]] = []
        earlier = self._ends[self.tokens[-1]][-window - 1 : -1]
        for end in reversed(earlier):
            ngram = self.tokens[end : end + k]
            if not any(other[: len(ngram)] == ngram for other in found):
                found.append(ngram)
            if len(found) == branches:
                break
        return found


def merge(ngrams: list[list[int]]) -> tuple[list[int], list[int]]:
    """N-grams as one tree that shares their beginnings: tokens and parents (-1 is the root)."""
    tokens: list[int] = []
    parents: list[int] = []
    nodes: dict[tuple[int, int], int] = {}
    for ngram in ngrams:
        at = -1
        for token in ngram:
            if (at, token) not in nodes:
                nodes[at, token] = len(tokens)
                tokens.append(token)
                parents.append(at)
            at = nodes[at, token]
    return tokens, parents
