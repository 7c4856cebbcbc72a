"""DraftMesh's own engine: the one decode loop for every draft, verifier, ffn and plan."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from draftmesh.registry import register
from draftmesh.registry.contracts.adaptive import Adaptive
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.draft import Draft
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.ranks import Ranks
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.sampling import Sampler
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.contracts.target import Target
from draftmesh.registry.contracts.verifier import Verifier
from draftmesh.stages.engine.batch import Batch
from draftmesh.stages.engine.clock import Clock
from draftmesh.stages.engine.sequences import Sequences


@register("engine", "native")
class NativeEngine:
    """Static batches: `batch_size` prompts are prefilled together and decoded until all end."""

    @dataclass(frozen=True)
    class Config:
        """No options of its own."""

        name: str = "native"

    def __init__(
        self,
        config: Config,
        checkpoint: Checkpoint,
        target: Target,
        draft: Draft,
        verifier: Verifier,
        sampler: Sampler,
        ranks: Ranks,
    ) -> None:
        self.checkpoint, self.target, self.draft = checkpoint, target, draft
        self.verifier, self.sampler, self.ranks = verifier, sampler, ranks

    @torch.inference_mode()
    def generate(
        self,
        requests: Sequence[Request],
        batch_size: int,
        on_finish: Callable[[Completion], None] = lambda completion: None,
    ) -> Generation:
        """Complete the requests of this rank's data-parallel group, in order.

        Every round each rank enters the same forwards: one full target forward, and before it the
        draft's own target forwards if any rank is drafting. A rank without work enters them with no
        valid token. The size of adaptive drafts is agreed on a round ahead.
        """
        counters = Counters()
        clock = Clock(counters, self.target.device)
        begin = clock.now()
        done: list[Completion] = []
        waiting = deque(requests)
        batch: Batch | None = None

        def finish(completion: Completion) -> None:
            done.append(completion)
            on_finish(completion)

        adaptive = self.draft if isinstance(self.draft, Adaptive) else None
        size = -1
        while True:
            if adaptive is not None and size >= 0:
                adaptive.settle(size)
            if batch is None and waiting:
                group = [waiting.popleft() for _ in range(min(batch_size, len(waiting)))]
                batch = self._open(group, counters, clock, finish)
            drafting = batch is not None and batch.prefilled
            with clock.measure("wait_s"):
                busy, drafts, size = self.ranks.agree(
                    batch is not None,
                    self.draft.target_forwards if drafting else 0,
                    -1 if adaptive is None else adaptive.wish(),
                )
            if not busy:
                break
            if drafts and not drafting:
                self.draft.idle()
            counters.target_forwards += 1
            if batch is None:
                self._idle()
                continue
            batch.step()
            if not batch.active:
                batch = None
        total = clock.now() - begin
        counters.overhead_s = total - counters.wall_s
        done.sort(key=lambda completion: completion.request.index)
        return Generation(done, counters, total)

    def _open(
        self,
        group: list[Request],
        counters: Counters,
        clock: Clock,
        finish: Callable[[Completion], None],
    ) -> Batch:
        sequences = Sequences(
            group, self.checkpoint.tokenizer, self.checkpoint.eos_ids, self.target.context
        )
        return Batch(
            group,
            self.target,
            self.draft,
            self.verifier,
            self.sampler,
            self.ranks,
            sequences,
            counters,
            clock,
            finish,
        )

    def _idle(self) -> None:
        token = torch.zeros(1, 1, dtype=torch.long, device=self.target.device)
        self.target.forward(
            token, self.target.new_cache(1, 1), valid=torch.zeros_like(token, dtype=torch.bool)
        )
