"""A tree of fixed layout grows: every level's tokens are chosen from the logits above them."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import History
from draftmesh.stages.draft.tree.children import Places, confidence, draw_siblings, likeliest
from draftmesh.stages.draft.tree.frontier import Frontier, RunNodes
from draftmesh.stages.draft.tree.layout import Layout
from draftmesh.stages.draft.tree.levels import Level, levels_of
from draftmesh.stages.draft.tree.start import Start


class StaticGrowth:
    """Grows `layout`; the proposal's nodes are numbered as the layout's.

    `children`: top, distinct or independent (see TreeOptions). The draft runs the nodes that get
    children, or with `whole` every node, the last level included.
    """

    def __init__(self, start: Start, layout: Layout, children: str, whole: bool) -> None:
        self.start, self.layout, self.children, self.whole = start, layout, children, whole
        self.levels = levels_of(layout)
        self.grown = 0
        self.tokens = start.budget.new_empty(len(start.budget), 0)
        self.valid = self.tokens.bool()
        self.run = RunNodes(self.tokens, self.tokens, self.valid)
        self.q: list[Tensor] = []
        self.q_index: list[int] = []

    def grow(self, logits: Tensor) -> Frontier | None:
        """logits [B, M, V] of the nodes that get children (M = 1 serves all of them)."""
        level = self.levels[self.grown]
        places = Places(self.start.positions + self.grown, self._history())
        if places.history is not None or self.children != "top":
            logits = logits.expand(-1, max(level.above) + 1, -1)
        choose = self._likeliest if self.children == "top" else self._draw
        tokens, valid = choose(level, logits, places)
        if level.parents[0] >= 0:
            valid = valid & self.valid[:, level.parents]
        valid = valid & (self.start.budget > self.grown)[:, None]
        tokens, valid = self.start.context.ranks.decide(tokens, valid)
        self.tokens = torch.cat([self.tokens, tokens], 1)
        self.valid = torch.cat([self.valid, valid], 1)
        self.grown += 1
        return self._frontier(level)

    def proposal(self) -> Proposal:
        """All levels grown so far."""
        rows, size = self.tokens.shape
        parents = self.tokens.new_tensor(self.layout.parents[:size]).expand(rows, size)
        q = torch.cat(self.q, 1) if self.q else None
        index = None if q is None else self.tokens.new_tensor(self.q_index).expand(rows, size)
        replacement = self.children != "distinct"
        return Proposal(self.tokens, parents, self.valid, q, index, replacement=replacement)

    def _likeliest(self, level: Level, logits: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        found = confidence(self.start.context, self.start.chance, logits, places)
        scores, ids = likeliest(found, max(level.ranks) + 1)
        above = level.above if ids.shape[1] > 1 else [0] * len(level.above)
        chosen = (slice(None), above, level.ranks)
        return ids[chosen], scores[chosen] > -torch.inf

    def _draw(self, level: Level, logits: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        probs = self.start.context.sampler(logits, places.history).probs
        assert probs is not None, "a greedy run takes the likeliest tokens"
        tokens, valid = [], []
        for parent in range(probs.shape[1]):
            pairs = zip(level.nodes, level.above, strict=True)
            streams = [Stream.DRAFT + node for node, above in pairs if above == parent]
            drawn, some = draw_siblings(
                self.start.chance,
                probs[:, parent],
                self.start.positions,
                streams,
                distinct=self.children == "distinct",
            )
            tokens.append(drawn)
            valid.append(some)
        before = sum(q.shape[1] for q in self.q)
        self.q.append(probs)
        self.q_index += [before + above for above in level.above]
        return torch.cat(tokens, 1), torch.cat(valid, 1)

    def _history(self) -> History | None:
        if self.grown == 0:
            return self.start.prefixes.history(self.tokens, self.tokens)
        run = self._ran(self.levels[self.grown - 1])
        return self.start.prefixes.history(run.tokens, run.parents)

    def _frontier(self, level: Level) -> Frontier | None:
        if not self.whole and not level.inner:
            return None
        expand: list[int] | range = level.inner if self.whole else range(len(level.inner))
        before = level.nodes.start if self.whole else level.ran_before
        run = self._all() if self.whole else self._ran(level)
        self.run = run
        return Frontier(
            run.tokens[:, before:],
            run.parents,
            run.valid[:, before:],
            before,
            torch.tensor(list(expand), dtype=torch.long, device=run.tokens.device),
        )

    def _ran(self, level: Level) -> RunNodes:
        tokens = self.tokens[:, level.run]
        parents = tokens.new_tensor(level.run_parents).expand_as(tokens)
        return RunNodes(tokens, parents, self.valid[:, level.run])

    def _all(self) -> RunNodes:
        parents = self.tokens.new_tensor(self.layout.parents[: self.tokens.shape[1]])
        return RunNodes(self.tokens, parents.expand_as(self.tokens), self.valid)
