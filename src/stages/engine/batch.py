"""One batch of sequences on its way through the decode loop."""

from collections.abc import Callable, Sequence
from time import perf_counter

import torch
from torch import Tensor
from torch.nn import functional

from draftmesh.registry import UserError
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.draft import Draft, Proposal, Rows, Step
from draftmesh.registry.contracts.ranks import Ranks
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.sampling import Distribution, Sampler
from draftmesh.registry.contracts.target import Target
from draftmesh.registry.contracts.verifier import Outcome, Verifier
from draftmesh.stages.engine.clock import Clock
from draftmesh.stages.engine.sequences import Sequences
from draftmesh.stages.sampling.noise import NoiseChance


class Batch:
    """Prefill first, then draft, verify, commit until every sequence has ended.

    Each call of `step` enters exactly one full target forward, so that ranks which share expert
    collectives can run different batches in lockstep.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        target: Target,
        draft: Draft,
        verifier: Verifier,
        sampler: Sampler,
        ranks: Ranks,
        sequences: Sequences,
        counters: Counters,
        clock: Clock,
        on_finish: Callable[[Completion], None],
    ) -> None:
        self.target, self.draft, self.verifier = target, draft, verifier
        self.sampler, self.ranks = sampler, ranks
        self.sequences, self.counters, self.clock = sequences, counters, clock
        self.on_finish = on_finish
        self.started = perf_counter()
        self.prefilled = False
        self.chance = NoiseChance.of(requests, target.device)
        longest = max(
            len(r.token_ids) + limit for r, limit in zip(requests, sequences.limits, strict=True)
        )
        capacity = longest + draft.nodes + 1
        self.cache = target.new_cache(len(requests), capacity)
        self.root = torch.empty(0)
        draft.start(Rows(tuple(requests), self.chance, capacity, self.cache))

    @property
    def active(self) -> bool:
        """Some sequence has not ended."""
        return len(self.sequences) > 0

    def step(self) -> None:
        """One target forward: the prompts at first, a proposal later."""
        if self.prefilled:
            self._decode()
        else:
            self._prefill()

    def _prefill(self) -> None:
        prompts = [torch.tensor(c.request.token_ids) for c in self.sequences.completions]
        lengths = torch.tensor([len(p) for p in prompts])
        tokens = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True)
        tokens, lengths = tokens.to(self.target.device), lengths.to(self.target.device)
        steps = torch.arange(tokens.shape[1], device=tokens.device)
        with self.clock.measure("prefill_s"):
            forward = self.target.forward(
                tokens,
                self.cache,
                valid=steps < lengths[:, None],
                capture=self.draft.capture,
                logits_at=lengths[:, None] - 1,
            )
        assert forward.logits is not None
        nothing = Proposal.empty(len(prompts), tokens.device)
        outcome = self._verify(nothing, forward.logits)
        self.cache.advance(lengths)
        self.prefilled = True
        self.counters.prefills += len(prompts)
        self.counters.prefill_tokens += int(lengths.sum())
        step = Step(tokens, lengths, steps.expand_as(tokens), forward.features, outcome.bonus)
        self._commit(step, [[token] for token in outcome.bonus.tolist()], first=True)

    def _decode(self) -> None:
        budget = (self.sequences.remaining() - 1).clamp(max=self.draft.depth)
        with self.clock.measure("draft_s"):
            proposal = self.draft.propose(budget.to(self.target.device))
        tokens = torch.cat([self.root[:, None], proposal.tokens], dim=1)
        resume = proposal.hidden is not None
        with self.clock.measure("verify_s"):
            forward = self.target.forward(
                tokens if proposal.hidden is None else proposal.hidden,
                self.cache,
                parents=_tree(proposal),
                valid=torch.cat(
                    [torch.ones_like(tokens[:, :1], dtype=torch.bool), proposal.valid], 1
                ),
                layers=range(proposal.resume_layer, self.target.num_layers) if resume else None,
                capture=self.draft.capture,
            )
        assert forward.logits is not None
        outcome = self._verify(proposal, forward.logits)
        kept = functional.pad(outcome.path + 1, (1, 0))
        counts = outcome.accepted + 1
        positions = self.cache.lengths[:, None] + torch.arange(kept.shape[1], device=kept.device)
        self.cache.keep(kept, counts)
        step = Step(
            tokens.gather(1, kept),
            counts,
            positions,
            {i: f.gather(1, _wide(kept, f)) for i, f in forward.features.items()},
            outcome.bonus,
        )
        accepted = step.tokens[:, 1:].tolist()
        emitted = [
            [*line[:count], bonus]
            for line, count, bonus in zip(
                accepted, outcome.accepted.tolist(), outcome.bonus.tolist(), strict=True
            )
        ]
        self._count(proposal, outcome, self._commit(step, emitted))

    def _verify(self, proposal: Proposal, logits: Tensor) -> Outcome:
        history = None
        if self.sampler.uses_history:
            history = self.sequences.history(proposal.tokens, proposal.parents)
        distribution = self.sampler(logits, history)
        # The root is the last committed token; the first token to choose comes right after it.
        positions = torch.tensor(self.sequences.lengths, device=logits.device)
        outcome = self.verifier.verify(proposal, distribution, self.chance, positions)
        _check_usable(distribution, outcome)
        return Outcome(*self.ranks.decide(outcome.path, outcome.accepted, outcome.bonus))

    def _commit(self, step: Step, emitted: list[list[int]], first: bool = False) -> list[int]:
        """Append what was emitted; how many tokens of each row stayed (a row may end early)."""
        now = perf_counter() - self.started
        keep, finished, stayed = [], [], []
        for row, (tokens, completion) in enumerate(
            zip(emitted, self.sequences.completions, strict=True)
        ):
            if first:
                completion.ttft_s = now
            ended = self.sequences.append(row, tokens)
            stayed.append(completion.accept_lengths[-1])
            if ended:
                completion.latency_s = now
                finished.append(completion)
            else:
                keep.append(row)
        if finished:
            step = self._select(step, keep)
        self.root = step.next
        if keep:
            with self.clock.measure("draft_s"):
                self.draft.observe(step)
        for completion in finished:
            self.on_finish(completion)
        return stayed

    def _select(self, step: Step, keep: list[int]) -> Step:
        rows = torch.tensor(keep, dtype=torch.long, device=step.tokens.device)
        self.sequences.select(keep)
        self.cache.select(rows)
        self.chance.select(rows)
        if keep:
            self.draft.drop(rows)
        return Step(
            step.tokens[rows],
            step.lengths[rows],
            step.positions[rows],
            {i: f[rows] for i, f in step.features.items()},
            step.next[rows],
        )

    def _count(self, proposal: Proposal, outcome: Outcome, stayed: list[int]) -> None:
        """Tokens behind the end of a sequence were neither accepted nor rejected."""
        counters = self.counters
        counters.steps += len(stayed)
        counters.rounds += 1
        counters.drafted += int(proposal.valid.sum())
        counters.emitted += sum(stayed)
        offered = _offered(proposal, outcome)
        for stood, emitted, more in zip(outcome.accepted.tolist(), stayed, offered, strict=True):
            accepted = min(stood, emitted)
            counters.accepted += accepted
            counters.histogram[accepted] += 1
            for depth in range(accepted):
                counters.offered_at[depth] += 1
                counters.accepted_at[depth] += 1
            if emitted > stood:
                counters.offered_at[accepted] += more


def _check_usable(distribution: Distribution, outcome: Outcome) -> None:
    """Raises UserError where a token was chosen from what is no distribution."""
    if distribution.usable is None:
        return
    used = functional.pad(outcome.path + 1, (1, 0))
    beyond = torch.arange(used.shape[1], device=used.device) > outcome.accepted[:, None]
    if not bool((distribution.usable.gather(1, used) | beyond).all()):
        raise UserError(
            "no token can be chosen: the model's logits are NaN or infinite (try "
            "model.dtype=float32), or the sampling options forbid every token"
        )


def _tree(proposal: Proposal) -> Tensor | None:
    """Parents among [root, nodes], or None for a chain."""
    if proposal.is_chain:
        return None
    root = proposal.parents.new_full((len(proposal.parents), 1), -1)
    return torch.cat([root, proposal.parents + 1], dim=1)


def _wide(path: Tensor, features: Tensor) -> Tensor:
    return path[..., None].expand(-1, -1, features.shape[-1])


def _offered(proposal: Proposal, outcome: Outcome) -> list[int]:
    """Per row 1 if the last accepted node had a candidate child, which was rejected."""
    if proposal.size == 0:
        return [0] * proposal.tokens.shape[0]
    padded = torch.cat([torch.full_like(outcome.path[:, :1], -1), outcome.path], dim=1)
    last = padded.gather(1, outcome.accepted[:, None])
    return ((proposal.parents == last) & proposal.valid).any(1).long().tolist()
