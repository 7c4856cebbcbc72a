"""What a task is given and what it returns."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from draftmesh.registry.contracts.draft import Draft
from draftmesh.registry.contracts.engine import Engine, Generation
from draftmesh.registry.contracts.ranks import Ranks
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.contracts.sampling import Sampler
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.contracts.target import Target
from draftmesh.registry.contracts.verifier import Verifier


class Pipeline(Protocol):
    """A built pipeline: the stages of one run on one rank, ready to complete requests."""

    cfg: dict[str, Any]
    """The resolved configuration."""

    run_dir: Path
    checkpoint: Checkpoint
    target: Target
    sampler: Sampler
    ranks: Ranks
    engine: Engine
    """The engine with the configured draft and verifier."""

    plain: Engine
    """The same model, feed-forward and plan, decoding without a draft."""

    main_draft: Draft
    """The configured draft."""

    verifier: Verifier
    """The configured verifier; what `auto` stands for."""

    spec: Any
    """The resolved configuration as a frozen RunSpec."""

    def requests(self) -> list[Request]:
        """The run's prompts, encoded, in order; the same on every rank."""
        ...

    def generate(
        self,
        engine: Engine,
        requests: Sequence[Request],
        on_finish: Callable[[Completion], None] = ...,
        batch_size: int | None = None,
    ) -> Generation:
        """Complete requests over all ranks: each owns a share; rank 0 gets all completions, merged
        counters and the longest time, the others get their own. `batch_size` None is the run's."""
        ...

    def converse(
        self,
        engine: Engine,
        requests: Sequence[Request],
        on_finish: Callable[[Completion], None] = ...,
    ) -> Generation:
        """`generate`, and then the later turns of each prompt, which follow the replies."""
        ...

    def draft(self, node: Mapping[str, Any]) -> Draft:
        """Another draft for this target, from its options."""
        ...

    def engine_with(
        self, draft: Draft, verifier: Verifier | None = None, sampler: Sampler | None = None
    ) -> Engine:
        """The configured engine with a draft, and on request another verifier or sampler."""
        ...

    def peer(self, name: str) -> Engine:
        """Another engine over the same model, decoding without a draft. Raises UserError if there
        are several ranks."""
        ...

    def variant(self, **changes: Mapping[str, Any]) -> "Pipeline":
        """This run with some options changed: variant(sampling={"temperature": 0}). The model is
        loaded anew only if its own options, the ffn's or the plan's change. Called by every rank.
        """
        ...

    def finished(self, completion: Completion) -> None:
        """A completion of the run's own method is final: it is written to samples.jsonl at once."""
        ...

    def reset_meters(self) -> None:
        """Forget what collectives and experts counted so far (after a warm-up)."""
        ...

    def keep_meters(self) -> None:
        """What they counted since the last reset is what the run reports (right after the method
        has decoded, before anything else does); else it is all until the task's end."""
        ...

    @property
    def lossless(self) -> bool:
        """Whether the configured stages claim to leave the target's distribution as it is."""
        ...

    @property
    def comparable(self) -> bool:
        """Whether tokens must equal plain decoding's: greedy, or `match` at the same seed."""
        ...

    @property
    def branching(self) -> bool:
        """Whether the draft proposes trees rather than chains."""
        ...

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Series for the tracker (rank 0 only; ignored elsewhere)."""
        ...


class Task(Protocol):
    """A task stage (kind `task`): `Stage(config).run(pipeline)`, on every rank; rank 0's result
    counts."""

    def run(self, pipeline: Pipeline) -> RunResult:
        """Do the work; called on every rank."""
        ...
