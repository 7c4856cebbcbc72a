"""What completes requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.request import Completion, Request


@dataclass
class Generation:
    """Completions of one process in request order, what was counted, the seconds it took."""

    completions: list[Completion]
    counters: Counters
    seconds: float

    def then(self, later: "Generation") -> "Generation":
        """This and what the same process generated after it."""
        done = self.completions + later.completions
        return Generation(done, self.counters.then(later.counters), self.seconds + later.seconds)


class Engine(Protocol):
    """Completes requests with the stages it was built from: `Stage(config, checkpoint, target,
    draft, verifier, sampler, ranks)`.

    A class may say `drafts`, the names of the only drafts that it has (it then runs on one rank and
    verifies in its own way), `keyed = False`: its sampled tokens are no function of seed, request
    and position, and `check_sampling(config)`, which raises UserError for options of the sampling
    stage that it does not have.
    """

    def generate(
        self,
        requests: Sequence[Request],
        batch_size: int,
        on_finish: Callable[[Completion], None] = ...,
    ) -> Generation:
        """`on_finish` is called as soon as a completion is final."""
        ...
