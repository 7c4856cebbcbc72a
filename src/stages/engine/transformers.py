"""transformers' own `generate`, assisted generation included, as a peer to compare with."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers import StoppingCriteriaList

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.draft import Draft
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.ranks import Ranks
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.sampling import Sampler
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.contracts.target import Target
from draftmesh.registry.contracts.verifier import Verifier
from draftmesh.stages.draft.ngram import NGramDraft
from draftmesh.stages.draft.small import SmallDraft
from draftmesh.stages.engine.arguments import check_sampling, sampling_arguments
from draftmesh.stages.engine.clock import now
from draftmesh.stages.engine.observer import Observer
from draftmesh.stages.engine.sequences import Sequences
from draftmesh.stages.model.packed import plain_products
from draftmesh.stages.model.progress import quiet


@register("engine", "transformers")
class TransformersEngine:
    """The model as transformers runs it: its attention, its cache, its loop. It drafts by prompt
    lookup (draft=ngram) or with an assistant (draft=small), one prompt at a time, with its own
    verification in place of the configured verifier; sampled tokens follow torch's generator."""

    @dataclass(frozen=True)
    class Config:
        """No options of its own."""

        name: str = "transformers"

    drafts: ClassVar[tuple[str, ...]] = ("none", "ngram", "small")
    keyed = False
    check_sampling = staticmethod(check_sampling)

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
        self.sampling, self.looks_back = sampling_arguments(sampler), sampler.uses_history
        self.assistant: Any = draft.model.model if isinstance(draft, SmallDraft) else None
        self.confidence = draft.config.confidence if isinstance(draft, SmallDraft) else 0.0

    @torch.inference_mode()
    def generate(
        self,
        requests: Sequence[Request],
        batch_size: int,
        on_finish: Callable[[Completion], None] = lambda completion: None,
    ) -> Generation:
        """Complete the requests in order, `batch_size` at a time, padded on the left; one at a time
        where padding would change the output.

        What a step drafts and verifies is one time, `verify_s`: they cannot be told apart.
        """
        self._check_context(requests)
        if not self._paddable(requests):
            batch_size = 1
        counters = Counters()
        begin = now(self.target.device)
        done: list[Completion] = []
        with self._own_ways():
            for start in range(0, len(requests), batch_size):
                group = requests[start : start + batch_size]
                done += self._batch(group, counters, on_finish)
        total = now(self.target.device) - begin
        counters.overhead_s = total - counters.wall_s
        return Generation(done, counters, total)

    def _paddable(self, requests: Sequence[Request]) -> bool:
        """Whether there may be more than one row, which padding makes of one length: transformers
        drafts for one only, its eager masks make NaN of padding in float64, its penalties count it,
        and rows that have ended still go on with the others."""
        longest = max((len(request.token_ids) for request in requests), default=0)
        limit = max((request.max_new_tokens for request in requests), default=0)
        fits = longest + limit <= self.target.context
        alone = self.draft.depth or self.target.dtype == torch.float64 or self.looks_back
        return fits and not alone

    def _check_context(self, requests: Sequence[Request]) -> None:
        """Raise UserError where transformers would draft beyond the model's positions."""
        for request in requests:
            end = len(request.token_ids) + request.max_new_tokens + self.draft.depth
            if self.draft.depth and end > self.target.context:
                raise UserError(
                    f"max_new_tokens={request.max_new_tokens}: with its drafts, transformers would "
                    f"pass the model's context of {self.target.context} tokens; lower it or use "
                    "engine=native"
                )

    def _batch(
        self,
        group: Sequence[Request],
        counters: Counters,
        on_finish: Callable[[Completion], None],
    ) -> list[Completion]:
        tokenizer, eos = self.checkpoint.tokenizer, self.checkpoint.eos_ids
        sequences = Sequences(group, tokenizer, eos, self.target.context)
        tokens, seen = self._padded(group)
        observer = Observer(sequences, tokens.shape[1], counters, on_finish, self.target.device)
        hook = self.target.model.register_forward_pre_hook(observer.note_forward, with_kwargs=True)
        try:
            with torch.random.fork_rng():
                torch.manual_seed(_seed(group))
                self.target.model.generate(
                    tokens,
                    attention_mask=seen,
                    max_new_tokens=max(sequences.limits),
                    eos_token_id=list(eos) or None,
                    pad_token_id=self.target.model.generation_config.pad_token_id or 0,
                    stopping_criteria=StoppingCriteriaList([observer]),
                    **self.sampling,
                    **self._drafting(),
                )
        finally:
            hook.remove()
        return sequences.completions

    def _padded(self, group: Sequence[Request]) -> tuple[Tensor, Tensor]:
        """Prompts [B, T], padded on the left, and where they are."""
        width = max(len(request.token_ids) for request in group)
        rows = [(width - len(request.token_ids), request.token_ids) for request in group]
        tokens = torch.tensor([[0] * left + list(ids) for left, ids in rows])
        seen = torch.tensor([[0] * left + [1] * len(ids) for left, ids in rows])
        return tokens.to(self.target.device), seen.to(self.target.device)

    def _drafting(self) -> dict[str, Any]:
        if isinstance(self.draft, NGramDraft):
            options = self.draft.config
            return {
                "prompt_lookup_num_tokens": options.k,
                "max_matching_ngram_size": options.max_match,
            }
        if self.assistant is None:
            return {}
        settings = self.assistant.generation_config
        settings.num_assistant_tokens = self.draft.depth
        settings.num_assistant_tokens_schedule = "constant"
        settings.assistant_confidence_threshold = self.confidence
        return {"assistant_model": self.assistant}

    @contextmanager
    def _own_ways(self) -> Iterator[None]:
        """transformers' own attention, and products with the weights as they were loaded."""
        models = [self.target.model] + ([self.assistant] if self.assistant is not None else [])
        before = [model.config._attn_implementation for model in models]
        with quiet(), plain_products(models):
            try:
                for model in models:
                    _choose_attention(model)
                for prepare in getattr(self.target, "before_forward", ()):
                    prepare(None)
                yield
            finally:
                for model, name in zip(models, before, strict=True):
                    model.set_attn_implementation(name)


def _choose_attention(model: Any) -> None:
    """The fastest that transformers has for the model."""
    for name in ("sdpa", "eager"):
        try:
            model.set_attn_implementation(name)
            return
        except ValueError:
            continue


def _seed(group: Sequence[Request]) -> int:
    first = group[0]
    return (first.seed * 1_000_003 + first.index) % (1 << 63)
