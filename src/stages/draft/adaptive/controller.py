"""Which size of draft gives the most tokens per second, found out on the way."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from draftmesh.stages.draft.adaptive.lane import Lane
from draftmesh.stages.draft.adaptive.survival import Survival

USUAL = 4
"""The size that drafting starts with."""


@dataclass(frozen=True)
class Round:
    """What happened in a round: the size of the drafts, and per row budget and accepted tokens.

    `drafted`: whether any row had a proposal. `seconds` is None where the time does not tell: the
    first round of another size has to make up for what the draft has missed, the last tokens of a
    sequence take shorter drafts.
    """

    size: int
    budgets: Sequence[int]
    accepted: Sequence[int]
    drafted: bool
    seconds: float | None


class Controller:
    """Sizes go from 0 (no drafts) to `longest`. What is accepted is learnt from all batches; what a
    round costs depends on the number of rows, so there is a lane for every doubling of it."""

    def __init__(self, longest: int) -> None:
        self.survival = Survival(longest)
        self.usual = min(USUAL, longest)
        self.lanes: dict[int, Lane] = {}
        self.wished = self.usual
        self.used: Counter[int] = Counter()

    def record(self, done: Round) -> None:
        """Learn from a round, and decide on the next (`wished`)."""
        self.used[done.size] += 1
        self.survival.record(done.size, done.budgets, done.accepted)
        rows = len(done.accepted).bit_length()
        if rows not in self.lanes:
            self.lanes[rows] = Lane(self.survival, self.usual)
        self.lanes[rows].record(done.size, done.seconds, done.drafted)
        self.wished = self.lanes[rows].wished

    @property
    def main(self) -> Lane:
        """The lane of most rounds."""
        lanes = self.lanes.values()
        return max(lanes, key=lambda lane: lane.rounds, default=Lane(self.survival, self.usual))
