"""A smaller language model of the same vocabulary drafts chains or trees."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.draft.picker import ChainPicker
from draftmesh.stages.draft.selfcheck import self_check
from draftmesh.stages.draft.sharing import Sharing, is_sharing
from draftmesh.stages.draft.shipped import local_head, shipped_head
from draftmesh.stages.draft.tree.options import StepwiseOptions
from draftmesh.stages.draft.tree.picker import TreePicker
from draftmesh.stages.draft.tree.shape import TreeShape
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
    class Config(StepwiseOptions):
        """path: folder or Hub id of the draft model; null takes the one that comes with DraftMesh
        for the model."""

        name: str = "small"
        path: str | None = None

    capture: tuple[int, ...] = ()
    target_forwards = 0

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.config, self.context = config, context
        self.full = self.shape = TreeShape.of(config)
        self.depth, self.nodes = self.full.depth, self.full.nodes
        self.agreement: float | None = None
        folder = self._sharing_folder()
        if folder is None:
            self.model = self._load_whole(str(config.path))
        else:
            target = context.target
            self.model = HFTarget(Sharing.load(folder, target).connect(target))
            self.agreement = self_check(self, f"draft.path={folder}", {})

    def _sharing_folder(self) -> Path | None:
        """Where the draft's own part of a model lies that shares the target's, if it is such."""
        path = self.config.path
        if path is None:
            return shipped_head("small", self.context.checkpoint.name, None)
        folder = local_head(path)
        return folder if folder is not None and is_sharing(folder) else None

    def _load_whole(self, path: str) -> HFTarget:
        target = self.context.target
        options = LoadOptions(
            dtype=str(target.dtype).removeprefix("torch."), device=str(target.device)
        )
        checkpoint = load_checkpoint(path, "draft", options, "draft.path")
        check_same_ids(self.context.checkpoint.tokenizer, checkpoint.tokenizer, path)
        abilities, name = examine(checkpoint.model), type(checkpoint.model).__name__
        if abilities.obstacle is not None:
            obstacle = f"{name} {abilities.obstacle}"
            raise UserError(f"draft.path={path}: {obstacle}; choose another draft")
        if self.shape.kind != "chain" and not abilities.trees:
            raise UserError(f"draft.path={path}: {name} cannot run trees: set draft.shape=chain")
        return HFTarget(checkpoint.model)

    def start(self, rows: Rows) -> None:
        """An empty cache of the draft's own."""
        count = len(rows.requests)
        self.cache = self.model.new_cache(count, rows.capacity + self.full.work + 1)
        self.chain = ChainPicker(self.context, rows, self.config.confidence)
        self.tree = TreePicker(self.context, rows, self.config)
        self.picker: ChainPicker | TreePicker = (
            self.chain if self.shape.kind == "chain" else self.tree
        )
        self.pending: list[list[int]] = [[] for _ in range(count)]
        self.fed = torch.zeros(count, dtype=torch.long, device=self.model.device)

    def resize(self, depth: int) -> None:
        """Propose at most `depth` deep; a dynamic tree has fewer nodes then, too."""
        self.shape = self.full.cut(depth)

    def observe(self, step: Step) -> None:
        """Commit the drafted tokens that stood; queue those the draft has not seen."""
        first = self.cache.get_seq_length() == 0 and not any(self.pending)
        stood = torch.zeros_like(self.fed) if first else self._keep(step)
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

    def _keep(self, step: Step) -> Tensor:
        """Commit what the draft has run of the accepted path; how many tokens [B]."""
        followed = self.tree.follow(step)
        if followed is not None:
            self.cache.keep(*followed)
            return followed[1]
        stood = (step.lengths - 1).minimum(self.fed)
        self.cache.advance(stood)
        return stood

    def propose(self, budget: Tensor) -> Proposal:
        """Feed what is pending, then draft; rows at the draft's own context limit get no draft."""
        room = [
            self.model.context - known - len(pending)
            for known, pending in zip(self.cache.host_lengths, self.pending, strict=True)
        ]
        budget = budget.minimum(torch.tensor(room, device=budget.device)).clamp(min=0)
        if int(budget.max()) == 0:
            return Proposal.empty(len(self.pending), budget.device)
        logits = self._catch_up(budget > 0)
        draft = self._draft_chain if self.shape.kind == "chain" else self._draft_tree
        return draft(logits, budget)

    def _draft_chain(self, logits: Tensor, budget: Tensor) -> Proposal:
        depth = int(budget.max())
        self.chain.begin()
        for step in range(depth):
            token = self.chain.pick(logits, self.cache.lengths + step)
            if step + 1 == depth or self.chain.ended:
                break
            forward = self.model.forward(token[:, None], self.cache, offset=step)
            assert forward.logits is not None
            logits = self._fit(forward.logits[:, 0])
            self.fed += budget > 0
        return self.chain.proposal(budget)

    def _draft_tree(self, logits: Tensor, budget: Tensor) -> Proposal:
        self.tree.begin(self.cache.lengths, budget, self.shape.cut(int(budget.max())))
        frontier = self.tree.grow(logits[:, None])
        while frontier is not None:
            forward = self.model.forward(
                frontier.tokens,
                self.cache,
                parents=frontier.parents,
                valid=frontier.valid,
                offset=frontier.offset,
            )
            assert forward.logits is not None
            frontier = self.tree.grow(self._fit(forward.logits))
        return self.tree.proposal()

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.cache.select(keep)
        self.fed = self.fed[keep]
        self.picker.drop(keep)
        self.pending = [self.pending[row] for row in keep.tolist()]

    def idle(self) -> None:
        """No collectives."""

    def facts(self) -> dict[str, Scalar]:
        """How often a model that shares the target's parts agreed with it when it was loaded."""
        return {"draft_agreement": self.agreement}

    def _catch_up(self, drafting: Tensor) -> Tensor:
        """Feed pending tokens of the drafting rows; logits [B, V] after the last one of each.

        Rows may be far apart when only some of them were drafted for: then in parts, since all
        rows' tokens are written behind the longest one's columns.
        """
        queues = [p if on else [] for p, on in zip(self.pending, drafting.tolist(), strict=True)]
        self.pending = [[] if queue else p for p, queue in zip(self.pending, queues, strict=True)]
        logits: Tensor | None = None
        while logits is None or any(queues):
            width = self.cache.capacity - self.cache.get_seq_length()
            counts = torch.tensor([min(len(q), width) for q in queues], device=self.model.device)
            found = self._feed([queue[:width] for queue in queues], counts)
            logits = found if logits is None else torch.where(counts[:, None] > 0, found, logits)
            queues = [queue[width:] for queue in queues]
        return logits

    def _feed(self, lines: list[list[int]], counts: Tensor) -> Tensor:
        """Commit ragged lines of tokens; logits [B, V] after each one's last."""
        width = max(map(len, lines))
        tokens = torch.tensor([line + [0] * (width - len(line)) for line in lines])
        forward = self.model.forward(
            tokens.to(counts.device),
            self.cache,
            valid=torch.arange(width, device=counts.device) < counts[:, None],
            logits_at=(counts - 1).clamp(min=0)[:, None],
        )
        self.cache.advance(counts)
        assert forward.logits is not None
        return self._fit(forward.logits[:, 0])

    def _fit(self, logits: Tensor) -> Tensor:
        return fit_vocabulary(logits, self.context.target.vocab_size)
