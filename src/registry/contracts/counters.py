"""What a decode loop counts and how long its parts took."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Counters:
    """Sums over all decode steps of all sequences; the prefill step is counted apart.

    A step is one sequence in one verify forward: `steps` counts them, `rounds` counts the forwards
    (a forward verifies a whole batch). `drafted` are the valid draft nodes, `accepted` those that
    stood. offered_at[d] counts the steps that had a candidate at depth d after accepting everything
    above it, accepted_at[d] those that accepted one there; `first_rejections` is their difference
    summed. `histogram` maps accepted tokens to steps. Times are seconds of this process: propose
    and observe; decode-phase target forwards; prefill forwards; waiting for other ranks to begin a
    round; everything else.
    """

    steps: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    emitted: int = 0
    prefills: int = 0
    prefill_tokens: int = 0
    target_forwards: int = 0
    histogram: Counter[int] = field(default_factory=Counter)
    offered_at: Counter[int] = field(default_factory=Counter)
    accepted_at: Counter[int] = field(default_factory=Counter)
    draft_s: float = 0.0
    verify_s: float = 0.0
    prefill_s: float = 0.0
    wait_s: float = 0.0
    overhead_s: float = 0.0

    @property
    def first_rejections(self) -> int:
        """Steps that ended at a rejected candidate."""
        return sum(self.offered_at.values()) - sum(self.accepted_at.values())

    @property
    def wall_s(self) -> float:
        """All the time of the loop."""
        return self.prefill_s + self.draft_s + self.verify_s + self.wait_s + self.overhead_s

    def then(self, other: "Counters") -> "Counters":
        """The same sequences' loop, and what it did after that: everything adds up."""
        return Counters(**{name: mine + getattr(other, name) for name, mine in vars(self).items()})

    def merge(self, other: "Counters") -> "Counters":
        """Two data-parallel groups that ran side by side: what happened to sequences adds up;
        rounds, forwards and times are those of the slower group, since they overlap."""
        slower = max(self, other, key=lambda counters: counters.wall_s)
        merged = Counters()
        for name, mine in vars(self).items():
            shared = name.endswith("_s") or name in ("rounds", "target_forwards")
            value = getattr(slower, name) if shared else mine + getattr(other, name)
            setattr(merged, name, value)
        return merged
