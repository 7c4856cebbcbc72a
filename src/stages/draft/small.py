"""A smaller language model of the same vocabulary drafts token by token."""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.picker import ChainPicker
from draftmesh.stages.draft.vocabulary import check_same_ids, fit_vocabulary
from draftmesh.stages.model.loading import load_checkpoint
from draftmesh.stages.model.options import LoadOptions
from draftmesh.stages.model.probe import examine
from draftmesh.stages.model.target import HFTarget


@register("draft", "small")
class SmallDraft:
    """Speculative decoding with a draft model (Leviathan et al. 2023, Chen et al. 2023).

    The model keeps its own cache. Tokens that the target accepted without the draft having seen
    them (the last drafted one, the bonus token) are fed at the next proposal.
    """

    @dataclass(frozen=True)
    class Config:
        """path: folder or Hub id of the draft model. k: tokens to propose."""

        name: str = "small"
        path: str | None = None
        k: int = 5

    capture: tuple[int, ...] = ()
    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        if config.path is None:
            raise UserError("draft.path: give the folder or Hub id of a draft model")
        self.context = context
        options = LoadOptions(
            dtype=str(context.target.dtype).removeprefix("torch."),
            device=str(context.target.device),
        )
        checkpoint = load_checkpoint(config.path, "draft", options, "draft.path")
        check_same_ids(context.checkpoint.tokenizer, checkpoint.tokenizer, config.path)
        obstacle = examine(checkpoint.model).obstacle
        if obstacle is not None:
            name = type(checkpoint.model).__name__
            raise UserError(f"draft.path={config.path}: {name} {obstacle}; choose another draft")
        self.model = HFTarget(checkpoint.model)
        self.depth = self.nodes = config.k

    def start(self, rows: Rows) -> None:
        """An empty cache of the draft's own."""
        count = len(rows.requests)
        self.cache = self.model.new_cache(count, rows.capacity + 1)
        self.picker = ChainPicker(self.context, rows)
        self.pending: list[list[int]] = [[] for _ in range(count)]
        self.fed = torch.zeros(count, dtype=torch.long, device=self.model.device)

    def observe(self, step: Step) -> None:
        """Commit the drafted tokens that stood; queue those the draft has not seen."""
        stood = (step.lengths - 1).minimum(self.fed)
        first = self.cache.get_seq_length() == 0 and not any(self.pending)
        if not first:
            self.cache.advance(stood)
        for pending, tokens, count, known, bonus in zip(
            self.pending,
            step.tokens.tolist(),
            step.lengths.tolist(),
            stood.tolist(),
            step.next.tolist(),
            strict=True,
        ):
            # The root is known since it was chosen.
            pending.extend([*tokens[0 if first else 1 + known : count], bonus])
        self.fed = torch.zeros_like(self.fed)
        self.picker.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """Feed what is pending, then draft; rows at the draft's own context limit get no draft."""
        room = [self.model.context - n - len(p) for n, p in self._lengths()]
        budget = budget.minimum(torch.tensor(room, device=budget.device)).clamp(min=0)
        depth = int(budget.max())
        if depth == 0:
            return Proposal.empty(len(self.pending), budget.device)
        self.picker.begin()
        logits = self._catch_up(budget > 0)
        for step in range(depth):
            token = self.picker.pick(logits, self.cache.lengths + step)
            if step + 1 < depth:
                forward = self.model.forward(token[:, None], self.cache, offset=step)
                assert forward.logits is not None
                logits = self._fit(forward.logits[:, 0])
                self.fed += budget > 0
        return self.picker.proposal(budget)

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.cache.select(keep)
        self.fed = self.fed[keep]
        self.picker.drop(keep)
        self.pending = [self.pending[row] for row in keep.tolist()]

    def idle(self) -> None:
        """No collectives."""

    def _lengths(self) -> list[tuple[int, list[int]]]:
        return list(zip(self.cache.host_lengths, self.pending, strict=True))

    def _catch_up(self, drafting: Tensor) -> Tensor:
        """Feed pending tokens of the drafting rows; logits [B, V] after the last one of each."""
        fed = [p if on else [] for p, on in zip(self.pending, drafting.tolist(), strict=True)]
        counts = torch.tensor([len(p) for p in fed], device=self.model.device)
        width = int(counts.max())
        tokens = torch.tensor([p + [0] * (width - len(p)) for p in fed], device=self.model.device)
        forward = self.model.forward(
            tokens,
            self.cache,
            valid=torch.arange(width, device=tokens.device) < counts[:, None],
            logits_at=(counts - 1).clamp(min=0)[:, None],
        )
        self.cache.advance(counts)
        self.pending = [
            [] if on else p for p, on in zip(self.pending, drafting.tolist(), strict=True)
        ]
        assert forward.logits is not None
        return self._fit(forward.logits[:, 0])

    def _fit(self, logits: Tensor) -> Tensor:
        return fit_vocabulary(logits, self.context.target.vocab_size)
