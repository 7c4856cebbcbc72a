"""No draft: plain decoding through the same loop."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext


@register("draft", "none")
class NoDraft:
    """Proposes nothing, so every step emits one token."""

    @dataclass(frozen=True)
    class Config:
        """No options of its own."""

        name: str = "none"

    capture: tuple[int, ...] = ()
    depth = 0
    nodes = 0
    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.rows = 0
        self.device: torch.device = context.target.device

    def start(self, rows: Rows) -> None:
        """Nothing to prepare."""
        self.rows = len(rows.requests)

    def observe(self, step: Step) -> None:
        """Nothing to learn."""

    def propose(self, budget: Tensor) -> Proposal:
        """An empty proposal."""
        return Proposal.empty(self.rows, self.device)

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.rows = len(keep)

    def idle(self) -> None:
        """No collectives."""
