"""A draft that proposes as much as pays."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from torch import Tensor

from draftmesh.registry.contracts.adaptive import Informative, Resizable
from draftmesh.registry.contracts.draft import Draft, Proposal, Rows, Step
from draftmesh.registry.contracts.ranks import Ranks
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.draft.adaptive.controller import Controller, Round


@dataclass
class Open:
    """A round under way."""

    started: float
    size: int
    settled: bool
    budgets: list[int]
    drafted: bool = False
    accepted: list[int] | None = None


class AdaptiveDraft:
    """Any draft, kept to the depth that maximises expected tokens per second (draft.k=auto).

    A round lasts from one `propose` to the next, so it holds drafting, verifying and everything
    else. Rank 0 decides for all; 0 turns drafting off, and the draft goes on being told.
    """

    def __init__(
        self, inner: Draft, ranks: Ranks, clock: Callable[[], float] = perf_counter
    ) -> None:
        self.inner, self.leads, self.clock = inner, ranks.rank == 0, clock
        self.capture, self.depth, self.nodes = inner.capture, inner.depth, inner.nodes
        self.controller = Controller(inner.depth)
        self.size = self.target_forwards = 0
        self.settled = False
        self.round: Open | None = None
        self.settle(self.controller.wished)

    def wish(self) -> int:
        """The size that should come next."""
        return self.controller.wished if self.leads else -1

    def settle(self, size: int) -> None:
        """The size of the proposals from now on; 0 for none."""
        if size == self.size:
            return
        self.size, self.settled = size, False
        if size and isinstance(self.inner, Resizable):
            self.inner.resize(size)
        self.target_forwards = self.inner.target_forwards if size else 0

    def start(self, rows: Rows) -> None:
        """A new batch."""
        self.round = None
        self.inner.start(rows)

    def observe(self, step: Step) -> None:
        """Count what was accepted; the draft is told, whether it drafts or not."""
        if self.round is not None:
            self.round.accepted = (step.lengths - 1).tolist()
        self.inner.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """The draft's proposal, at most as deep as settled."""
        now = self.clock()
        self._close(now)
        self.round = Open(now, self.size, self.settled, budget.tolist())
        self.settled = True
        if self.size == 0:
            return Proposal.empty(len(budget), budget.device)
        proposal = self.inner.propose(budget.clamp(max=self.size))
        self.round.drafted = proposal.size > 0 and bool(proposal.valid.any())
        return proposal

    def _close(self, now: float) -> None:
        done = self.round
        if done is None or done.accepted is None:
            return
        telling = done.settled and max(done.budgets, default=0) >= done.size
        seconds = now - done.started if telling else None
        self.controller.record(Round(done.size, done.budgets, done.accepted, done.drafted, seconds))

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        if self.round is not None:
            self.round.budgets = [self.round.budgets[row] for row in keep.tolist()]
        self.inner.drop(keep)

    def idle(self) -> None:
        """The draft's own, at its present size."""
        if self.size:
            self.inner.idle()

    def facts(self) -> dict[str, Scalar]:
        """The size that was chosen and why, and the mean over all rounds."""
        used, main = self.controller.used, self.controller.main
        facts: dict[str, Scalar] = {
            "chosen_k": main.best,
            "chosen_k_reason": main.reason(),
            "mean_k": sum(s * n for s, n in used.items()) / used.total() if used else None,
        }
        return facts | dict(self.inner.facts()) if isinstance(self.inner, Informative) else facts
