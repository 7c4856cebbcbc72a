"""A draft for tests: the target itself with noise on its logits, in any shape.

Registered as `scripted` inside `registered()`. Without noise every proposal is what the target
would choose; with a lot of it, hardly anything is; q is known whenever tokens are drawn from it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import REGISTRY
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.stages.draft.small import SmallDraft
from draftmesh.stages.model.target import HFTarget

SHAPES = {
    "chain": {"k": 3},
    "static": {"shape": "static", "k": 4, "nodes": 9, "top_k": 3},
    "widths": {"shape": "static", "widths": [3, 2, 1]},
    "paths": {"shape": "static", "paths": [[0], [1], [0, 0], [0, 2], [0, 0, 0]]},
    "dynamic": {"shape": "dynamic", "k": 4, "nodes": 9, "top_k": 3},
}
"""Options for every kind of shape."""


class ScriptedDraft(SmallDraft):
    """The target plus noise. `proposals` holds all that was proposed; `outcomes` counts accepted
    tokens against the depth of the tree that was offered, for every row and step."""

    @dataclass(frozen=True)
    class Config(SmallDraft.Config):
        """noise: standard deviation added to the logits; seed: of that noise."""

        name: str = "scripted"
        confidence: float = 0.0
        noise: float = 0.0
        seed: int = 0

    last: "ScriptedDraft"
    """The one that was built last."""

    def _sharing_folder(self) -> None:
        return None

    def _load_whole(self, path: str) -> HFTarget:
        ScriptedDraft.last = self
        self.generator = torch.Generator().manual_seed(self.config.seed)
        self.proposals: list[Proposal] = []
        self.outcomes: list[tuple[int, int]] = []
        return HFTarget(self.context.target.model)

    def start(self, rows: Rows) -> None:
        super().start(rows)
        self.offered: Tensor | None = None

    def _fit(self, logits: Tensor) -> Tensor:
        noise = torch.randn(logits.shape, generator=self.generator, dtype=torch.float64)
        return super()._fit(logits + self.config.noise * noise.to(logits))

    def propose(self, budget: Tensor) -> Proposal:
        proposal = super().propose(budget)
        self.proposals.append(proposal)
        self.offered = depths(proposal)
        return proposal

    def observe(self, step: Step) -> None:
        if self.offered is not None:
            accepted = (step.lengths - 1).tolist()
            self.outcomes += zip(accepted, self.offered.tolist(), strict=True)
            self.offered = None
        super().observe(step)

    def drop(self, keep: Tensor) -> None:
        super().drop(keep)
        self.offered = None if self.offered is None else self.offered[keep]

    def seen(self) -> set[str]:
        """Which of zero, partial and full acceptance have occurred."""
        kinds = [(a, d) for a, d in self.outcomes if d > 0]
        return {"zero" if a == 0 else "full" if a == d else "partial" for a, d in kinds}


def depths(proposal: Proposal) -> Tensor:
    """The longest valid path [B] of each row."""
    found = []
    for parents, valid in zip(proposal.parents.tolist(), proposal.valid.tolist(), strict=True):
        depth: dict[int, int] = {-1: 0}
        for node, parent in enumerate(parents):
            if valid[node]:
                depth[node] = depth[parent] + 1
        found.append(max(depth.values()))
    return torch.tensor(found)


@contextmanager
def registered() -> Iterator[None]:
    """`draft=scripted` exists inside."""
    with REGISTRY.isolated():
        REGISTRY.register("draft", "scripted")(ScriptedDraft)
        yield
