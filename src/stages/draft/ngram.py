"""Prompt lookup: propose what followed the last occurrence of the current n-gram."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext


class NGramIndex:
    """Where each n-gram of a growing sequence last ended, for n in [shortest, longest].

    An append costs O(longest); a look-up costs O(longest) whatever the sequence's length.
    """

    def __init__(self, shortest: int, longest: int) -> None:
        self.shortest, self.longest = shortest, longest
        self.tokens: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}

    def extend(self, tokens: list[int]) -> None:
        """Append tokens. An n-gram is indexed once it has a follower, so it never finds itself."""
        for token in tokens:
            end = len(self.tokens)
            for n in range(self.shortest, min(self.longest, end) + 1):
                self._ends[tuple(self.tokens[end - n :])] = end
            self.tokens.append(token)

    def lookup(self, count: int) -> list[int]:
        """Up to count tokens that followed the longest known n-gram at the end; [] if there is
        none.

        A match that runs into the end of the sequence goes on with what it has copied so far, so a
        repeating pattern is proposed at full length.
        """
        for n in range(min(self.longest, len(self.tokens)), self.shortest - 1, -1):
            end = self._ends.get(tuple(self.tokens[-n:]))
            if end is not None:
                period = len(self.tokens) - end
                return [self.tokens[end + i % period] for i in range(count)]
        return []


@register("draft", "ngram")
class NGramDraft:
    """Prompt lookup decoding: free drafts for text that repeats its prompt or itself.

    Source: Saxena, "Prompt Lookup Decoding" (2023). Deterministic, so q is one-hot.
    """

    @dataclass(frozen=True)
    class Config:
        """k: tokens to propose. min_match, max_match: lengths of the n-gram to look up; the longest
        match wins."""

        name: str = "ngram"
        k: int = 5
        min_match: int = 2
        max_match: int = 4

        def __post_init__(self) -> None:
            if self.min_match < 1 or self.max_match < self.min_match:
                raise UserError("draft.min_match must be at least 1 and at most draft.max_match")

    capture: tuple[int, ...] = ()
    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.config = config
        self.depth = self.nodes = config.k
        self.device = context.target.device
        self.indices: list[NGramIndex] = []

    def start(self, rows: Rows) -> None:
        """One empty index per sequence."""
        shortest, longest = self.config.min_match, self.config.max_match
        self.indices = [NGramIndex(shortest, longest) for _ in rows.requests]

    def observe(self, step: Step) -> None:
        """Index the newly accepted tokens and the bonus token."""
        lengths, following = step.lengths.tolist(), step.next.tolist()
        for index, tokens, count, bonus in zip(
            self.indices, step.tokens.tolist(), lengths, following, strict=True
        ):
            # After the prompt, a step's first token is the root, known since it was chosen.
            new = tokens[1:count] if index.tokens else tokens[:count]
            index.extend([*new, bonus])

    def propose(self, budget: Tensor) -> Proposal:
        """Copy what followed the last match, at most budget [B] tokens per row."""
        found = [
            index.lookup(count) for index, count in zip(self.indices, budget.tolist(), strict=True)
        ]
        width = max(map(len, found), default=0)
        padded = [line + [0] * (width - len(line)) for line in found]
        tokens = torch.tensor(padded, dtype=torch.long, device=self.device).view(len(found), width)
        counts = torch.tensor([len(line) for line in found], device=self.device)
        valid = torch.arange(width, device=self.device) < counts[:, None]
        return Proposal.chain(tokens, valid)

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.indices = [self.indices[row] for row in keep.tolist()]

    def idle(self) -> None:
        """No collectives."""
