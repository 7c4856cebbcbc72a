"""Watches transformers' loop from its stopping criterion: what was emitted when, and what ends."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import StoppingCriteria

from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.request import Completion
from draftmesh.stages.engine.clock import now
from draftmesh.stages.engine.sequences import Sequences


class Observer(StoppingCriteria):
    """Called once a step with all tokens so far: hands the new ones to `sequences`, which decide
    where a row ends, and counts as the native loop does."""

    def __init__(
        self,
        sequences: Sequences,
        width: int,
        counters: Counters,
        on_finish: Callable[[Completion], None],
        device: torch.device,
    ) -> None:
        self.sequences, self.counters, self.on_finish = sequences, counters, on_finish
        self.device = device
        self.seen = width
        self.width = width
        self.candidates = 0
        self.begun = self.last = now(device)
        self.ended = [False] * len(sequences)
        self.prefilled = False

    def note_forward(self, _: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """A forward of the target begins: what it holds beyond committed tokens are candidates."""
        tokens = args[0] if args else kwargs["input_ids"]
        self.candidates = int(tokens.shape[1]) - (1 if self.prefilled else self.width)

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        """input_ids [B, T] -> bool [B]: which rows have ended."""
        time = now(self.device)
        new = input_ids[:, self.seen :].tolist()
        self.seen = input_ids.shape[1]
        running = [row for row, ended in enumerate(self.ended) if not ended]
        for row in running:
            completion = self.sequences.completions[row]
            if not self.prefilled:
                completion.ttft_s = time - self.begun
            self.ended[row] = self.sequences.append(row, new[row])
            self._count(completion, self.ended[row])
            if self.ended[row]:
                completion.latency_s = time - self.begun
                self.on_finish(completion)
        self._spend(time)
        return torch.tensor(self.ended, device=input_ids.device)

    def _count(self, completion: Completion, ended: bool) -> None:
        """What was cut off at a row's end was neither accepted nor rejected. Drafts may come with
        the prompt, which makes that forward a step."""
        counters = self.counters
        if not self.prefilled:
            counters.prefills += 1
            counters.prefill_tokens += len(completion.request.token_ids)
            if not self.candidates:
                return
        emitted = completion.accept_lengths[-1]
        accepted = emitted - 1
        counters.steps += 1
        counters.emitted += emitted
        counters.drafted += self.candidates
        counters.accepted += accepted
        counters.histogram[accepted] += 1
        for depth in range(accepted):
            counters.offered_at[depth] += 1
            counters.accepted_at[depth] += 1
        counters.offered_at[accepted] += not ended and accepted < self.candidates

    def _spend(self, time: float) -> None:
        counters = self.counters
        counters.target_forwards += 1
        if self.prefilled:
            counters.rounds += 1
            counters.verify_s += time - self.last
        else:
            counters.prefill_s += time - self.last
        self.prefilled, self.last = True, time
