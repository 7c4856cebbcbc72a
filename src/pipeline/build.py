"""From a spec to a pipeline that can complete requests: every stage built and connected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from draftmesh.pipeline.meters import Meters, read_meters
from draftmesh.pipeline.requests import RequestOptions, next_turn, requests_of
from draftmesh.pipeline.samples import SampleLog
from draftmesh.pipeline.spec import Node, RunSpec
from draftmesh.registry import UserError, build, build_config, get
from draftmesh.registry.contracts.adaptive import Informative
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.draft import Draft
from draftmesh.registry.contracts.engine import Engine, Generation
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.sampling import Sampler
from draftmesh.registry.contracts.stage import Checkpoint, DraftContext, Prompt
from draftmesh.registry.contracts.target import Target
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.registry.contracts.verifier import Verifier
from draftmesh.stages.draft.adaptive.draft import AdaptiveDraft
from draftmesh.stages.draft.adaptive.node import at_most, is_automatic
from draftmesh.stages.ffn.report import MoeReport, summarise
from draftmesh.stages.ffn.stage import FeedForward
from draftmesh.stages.model.context import context_note
from draftmesh.stages.model.forwardonly import ForwardOnlyTarget
from draftmesh.stages.model.packed import affordable, pack
from draftmesh.stages.model.probe import Abilities, examine
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.splitting import split_model
from draftmesh.stages.task.pieces import token_pieces

LogMetrics = Callable[[dict[str, float], int | None], None]
Show = Callable[[Completion, Sequence[str]], None]


@dataclass
class BuiltPipeline:
    """The Pipeline contract over built stages."""

    spec: RunSpec
    cfg: dict[str, Any]
    run_dir: Path
    checkpoint: Checkpoint
    target: Target
    abilities: Abilities
    sampler: Sampler
    ranks: Mesh
    ffn: FeedForward
    log: LogMetrics
    show: Show | None
    notes: list[str] = field(default_factory=list)
    kept: Meters | None = None

    @cached_property
    def samples(self) -> SampleLog:
        """Where finished completions go at once."""
        return SampleLog(self.run_dir)

    @cached_property
    def engine(self) -> Engine:
        """With the configured draft and verifier."""
        return self.engine_with(self.main_draft)

    @cached_property
    def plain(self) -> Engine:
        """Without a draft."""
        return self.engine_with(self.draft({"name": "none"}))

    @property
    def verifier_name(self) -> str:
        """The configured verifier; `auto` is `match`, lossless for every drafting rule."""
        name: str = self.spec.verifier["name"]
        return "match" if name == "auto" else name

    @cached_property
    def main_draft(self) -> Draft:
        """The configured draft."""
        return self.draft(self.spec.draft)

    @cached_property
    def verifier(self) -> Verifier:
        """The configured verifier."""
        verifier: Verifier = build("verifier", dict(self.spec.verifier, name=self.verifier_name))
        return verifier

    def engine_with(
        self, draft: Draft, verifier: Verifier | None = None, sampler: Sampler | None = None
    ) -> Engine:
        """The configured engine with a draft, and on request another verifier or sampler."""
        verifier, sampler = verifier or self.verifier, sampler or self.sampler
        return self._engine(self.spec.engine, draft, verifier, sampler)

    def peer(self, name: str) -> Engine:
        """Another engine decoding plainly (see the contract)."""
        draft = self.draft({"name": "none"})
        return self._engine({"name": name}, draft, self.verifier, self.sampler)

    def _engine(self, node: Node, draft: Draft, verifier: Verifier, sampler: Sampler) -> Engine:
        parts = (self.checkpoint, self.target, draft, verifier, sampler, self.ranks)
        engine: Engine = build("engine", node, *parts)
        return engine

    def draft(self, node: Node) -> Draft:
        """A draft built for this target; refused if the model can't do what the draft needs."""
        cls = get("draft", node["name"])
        automatic, node = is_automatic(node), at_most(node, self.target.context)
        model = type(self.target.model).__name__
        if not self.target.speculative and node["name"] != "none":
            raise UserError(f"{model} {self.abilities.obstacle}: use draft=none")
        coupled = self.verifier_name == "match"
        context = DraftContext(
            self.target, self.checkpoint, self.sampler, self.ranks, coupled, automatic
        )
        draft: Draft = cls(build_config(cls, node), context)
        if draft.target_forwards and not self.abilities.resume:
            raise UserError(
                f"{model} cannot stop at a layer and resume there: choose another draft than "
                f"draft={node['name']}"
            )
        if draft.depth >= self.target.context:
            raise UserError(
                f"draft.k={draft.depth}: must be smaller than the model's context of "
                f"{self.target.context} tokens"
            )
        if draft.nodes > draft.depth and not self.abilities.trees:
            raise UserError(f"{model} cannot verify trees: set draft.shape=chain")
        return AdaptiveDraft(draft, self.ranks) if automatic else draft

    def requests(self) -> list[Request]:
        """The run's prompts as requests."""
        if self.spec.prompt is not None:
            prompts: Sequence[Prompt] = [Prompt("prompt", (self.spec.prompt,))]
        else:
            prompts = build("data", self.spec.data).load()
        options = RequestOptions(self.spec.max_new_tokens, self.spec.stop, self.spec.seed)
        return requests_of(prompts, self.checkpoint, self.target.context, options)

    def generate(
        self,
        engine: Engine,
        requests: Sequence[Request],
        on_finish: Callable[[Completion], None] = lambda completion: None,
        batch_size: int | None = None,
    ) -> Generation:
        """Complete requests over all ranks (see the contract)."""
        together = batch_size or self.spec.batch_size
        return self._gathered(engine.generate(self.ranks.own(requests), together, on_finish))

    def converse(
        self,
        engine: Engine,
        requests: Sequence[Request],
        on_finish: Callable[[Completion], None] = lambda completion: None,
    ) -> Generation:
        """Complete requests turn by turn over all ranks (see the contract)."""
        last = own = engine.generate(self.ranks.own(requests), self.spec.batch_size, on_finish)
        for _ in range(max((len(request.later) for request in requests), default=0)):
            replied = [c for c in last.completions if c.request.later]
            asked = [next_turn(c, self.checkpoint, self.target.context) for c in replied]
            last = engine.generate(asked, self.spec.batch_size, on_finish)
            own = own.then(last)
        return self._gathered(own)

    def _gathered(self, own: Generation) -> Generation:
        """On rank 0 the shares of all data-parallel groups as one, elsewhere this rank's own."""
        shares = self.ranks.gather(own)
        return own if shares is None else merge(shares)

    def variant(self, **changes: Node) -> "BuiltPipeline":
        """This run with some options changed (see the contract)."""
        changed = {kind: {**self.cfg[kind], **options} for kind, options in changes.items()}
        cfg = {**self.cfg, **changed}
        if changes.keys() <= {"draft", "verifier", "sampling"}:
            spec = RunSpec.of(cfg)
            sampler = _sampler(spec.sampling, self.checkpoint, self.target)
            return replace(self, spec=spec, cfg=cfg, sampler=sampler)
        return build_pipeline(cfg, self.run_dir, self.ranks, self.log)

    def finished(self, completion: Completion) -> None:
        """Write a completion down (one rank of each tensor-parallel group does, where the run
        folder is within reach), and show it."""
        if self.ranks.tp_rank == 0 and (self.ranks.rank == 0 or self.run_dir.is_dir()):
            self.samples.append(completion)
        if self.show is not None:
            pieces = token_pieces(self.checkpoint.tokenizer, completion.token_ids)
            self.show(completion, pieces)

    def reset_meters(self) -> None:
        """Forget what collectives and experts counted so far."""
        self.ranks.traffic.reset()
        if self.ffn.moe is not None:
            self.ffn.moe.reset()

    def keep_meters(self) -> None:
        """What was counted since then is what the run reports, whatever is done afterwards."""
        self.kept = read_meters(self.ffn, self.ranks)

    def meters(self) -> Meters:
        """What was kept, else what was counted so far."""
        return self.kept or read_meters(self.ffn, self.ranks)

    @cached_property
    def lossless(self) -> bool:
        """Whether the verifier leaves the target's distribution as it is."""
        verifier: type[Verifier] = get("verifier", self.verifier_name)
        return verifier.lossless

    @property
    def comparable(self) -> bool:
        """Whether drafting must give plain decoding's tokens."""
        keyed = getattr(get("engine", self.spec.engine["name"]), "keyed", True)
        return self.lossless and (self.sampler.greedy or (keyed and self.verifier_name == "match"))

    @property
    def branching(self) -> bool:
        """Whether the draft proposes trees: more nodes than its depth."""
        draft = self.main_draft
        return draft.nodes > draft.depth

    def ffn_facts(
        self, reports: Sequence[MoeReport | None]
    ) -> tuple[list[list[int]] | None, dict[str, Scalar]]:
        """What the experts of all ranks did: the load [layers][experts], and flat results."""
        moe = self.ffn.moe
        parts = [report for report in reports if report is not None]
        if moe is None or not parts:
            return None, {}
        facts = asdict(summarise(parts, moe.placement))
        return facts.pop("load"), facts

    def draft_facts(self) -> Mapping[str, Scalar]:
        """What the configured draft has to say, if the task has used it: this rank's numbers."""
        draft = self.__dict__.get("main_draft")
        return draft.facts() if isinstance(draft, Informative) else {}

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Series for the tracker."""
        self.log(metrics, step)


def merge(shares: Sequence[Generation]) -> Generation:
    """One generation out of the data-parallel groups' shares."""
    counters = Counters()
    for share in shares:
        counters = counters.merge(share.counters)
    completions = sorted(
        (c for share in shares for c in share.completions),
        key=lambda c: (c.request.index, c.request.turn),
    )
    return Generation(completions, counters, max(share.seconds for share in shares))


def build_pipeline(
    cfg: Mapping[str, Any],
    run_dir: Path,
    ranks: Mesh,
    log: LogMetrics | None = None,
    show: Show | None = None,
) -> BuiltPipeline:
    """Load the model, split it over the ranks and build everything around it (drafts are built at
    first use)."""
    spec = RunSpec.of(cfg)
    checkpoint: Checkpoint = build("model", spec.model).load()
    abilities = examine(checkpoint.model)
    if abilities.obstacle is not None and ranks.world > 1:
        raise UserError(
            f"{type(checkpoint.model).__name__} {abilities.obstacle}: use parallel=single"
        )
    split = split_model(checkpoint.model, build("ffn", spec.ffn), ranks)
    ffn: FeedForward = split.feed_forward
    if affordable(checkpoint.model, ranks.world):
        pack(checkpoint.model)
    wrapper: Any = HFTarget if abilities.obstacle is None else ForwardOnlyTarget
    target = wrapper(checkpoint.model)
    if ffn.moe is not None:
        target.before_forward.append(ffn.moe.context.set_valid)
    sampler = _sampler(spec.sampling, checkpoint, target)
    limited = context_note(target.config)
    return BuiltPipeline(
        spec,
        dict(cfg),
        run_dir,
        checkpoint,
        target,
        abilities,
        sampler,
        ranks,
        ffn,
        log or (lambda metrics, step: None),
        show,
        [*split.notes, *([limited] if limited else [])],
    )


def _sampler(node: Node, checkpoint: Checkpoint, target: Target) -> Sampler:
    tokenizer, vocab = checkpoint.tokenizer, target.vocab_size
    valid = vocab if tokenizer is None else min(len(tokenizer), vocab)
    sampler: Sampler = build("sampling", node, vocab, valid)
    return sampler
