"""What a decode loop counted and how long it took, before anything is derived from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Counters:
    """Counts and clocks of a run.

    A *round* is one pass of the loop over a batch (draft, verify, accept); a *step* is what a round
    did to one sequence, so a round over B sequences holds B steps. The prefill, which chooses the
    first token, is neither. Counts are what the verifier decided, before a sequence was cut at an
    end-of-sequence id, a stop string or `max_new_tokens`.

    `k` is the longest path a proposal could have. `drafted` counts proposed nodes, `accepted` the
    accepted ones, `first_rejections` the steps whose path ended at a node that had draft children.
    `acceptance_histogram` is {accepted draft tokens: steps}. `position_drafted[d]` counts the steps
    whose proposal reached depth d + 1, `position_accepted[d]` those whose accepted path did.
    `target_forwards` counts every forward of the target model, prefill chunks included.
    Clocks are in seconds, and every second of a batch is in exactly one of them.
    """

    k: int = 0
    rounds: int = 0
    steps: int = 0
    target_forwards: int = 0
    drafted: int = 0
    accepted: int = 0
    first_rejections: int = 0
    acceptance_histogram: Mapping[int, int] = field(default_factory=dict)
    position_drafted: tuple[int, ...] = ()
    position_accepted: tuple[int, ...] = ()
    prefill_s: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    overhead_s: float = 0.0

    @property
    def wall_s(self) -> float:
        """Seconds from the first batch's start to the last one's end, without gaps between them."""
        return self.prefill_s + self.draft_s + self.verify_s + self.overhead_s

    @property
    def tree(self) -> bool:
        """Whether some proposal had several nodes at one depth."""
        return self.drafted > sum(self.position_drafted)

    def then(self, later: "Counters") -> "Counters":
        """This and what the same ranks did afterwards: counts and clocks add up."""
        return replace(
            _sum_of_steps((self, later)),
            rounds=self.rounds + later.rounds,
            target_forwards=self.target_forwards + later.target_forwards,
            prefill_s=self.prefill_s + later.prefill_s,
            draft_s=self.draft_s + later.draft_s,
            verify_s=self.verify_s + later.verify_s,
            overhead_s=self.overhead_s + later.overhead_s,
        )


def merge(parts: Sequence[Counters]) -> Counters:
    """The counters of data-parallel groups that ran side by side.

    What happened to sequences adds up. Rounds, forwards and clocks are those of the slowest group,
    because the groups' time overlaps and a forward with collectives is one forward for all.
    """
    if not parts:
        return Counters()
    slowest = max(parts, key=lambda part: part.wall_s)
    return replace(
        _sum_of_steps(parts),
        rounds=slowest.rounds,
        target_forwards=slowest.target_forwards,
        prefill_s=slowest.prefill_s,
        draft_s=slowest.draft_s,
        verify_s=slowest.verify_s,
        overhead_s=slowest.overhead_s,
    )


def _sum_of_steps(parts: Sequence[Counters]) -> Counters:
    histogram: dict[int, int] = {}
    for part in parts:
        for accepted, steps in part.acceptance_histogram.items():
            histogram[accepted] = histogram.get(accepted, 0) + steps
    return Counters(
        k=max(part.k for part in parts),
        steps=sum(part.steps for part in parts),
        drafted=sum(part.drafted for part in parts),
        accepted=sum(part.accepted for part in parts),
        first_rejections=sum(part.first_rejections for part in parts),
        acceptance_histogram=dict(sorted(histogram.items())),
        position_drafted=_add([part.position_drafted for part in parts]),
        position_accepted=_add([part.position_accepted for part in parts]),
    )


def _add(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    width = max(len(row) for row in rows)
    return tuple(sum(row[i] for row in rows if i < len(row)) for i in range(width))
