"""The logits processors of a run, applied to every node of a draft tree at once."""

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import (
    LogitsProcessor,
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.sampling import Distribution, History
from draftmesh.stages.sampling.candidates import Candidates
from draftmesh.stages.sampling.history import node_histories
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.penalties import WrittenTokenPenalty
from draftmesh.stages.sampling.truncation import min_p, top_k, top_p


@register("sampling", "processors")
class Processors:
    """Logit bias, penalties, temperature, top-k, top-p and min-p, in transformers' own order.

    Penalties see the prefix and each node's own path. Arithmetic is float32, float64 for float64
    logits. Distributions always have `vocab_size` entries; ids from `valid_vocab` on (the padding
    of an embedding matrix) have probability 0, whatever the width of the logits.
    """

    Config = SamplingOptions

    def __init__(
        self, config: SamplingOptions, vocab_size: int, valid_vocab: int | None = None
    ) -> None:
        """Raises UserError for a `logit_bias` outside the vocabulary."""
        self.config = config
        self.vocab_size = vocab_size
        self.valid_vocab = vocab_size if valid_vocab is None else min(valid_vocab, vocab_size)
        self.greedy = config.temperature == 0
        self._bias = _bias(config.logit_bias, self.valid_vocab)
        self._looking_back = _looking_back(config)
        self._written = _written(config)
        self._truncation = _truncation(config)
        self.uses_history = bool(self._looking_back or self._written)

    def __call__(self, logits: Tensor, history: History | None = None) -> Distribution:
        """logits [B, M, V'] -> distributions of the history's last M nodes (see Sampler)."""
        shape = logits.shape[:2]
        scores, usable = self._processed(logits, history)
        usable = usable.view(shape)
        if self.greedy:
            return Distribution(tokens=scores.argmax(-1).view(shape), usable=usable)
        probs = self._probs(scores).view(*shape, self.vocab_size)
        return Distribution(probs=probs, usable=usable)

    def log_probs(self, logits: Tensor, history: History | None = None) -> Tensor:
        """logits [B, M, V'] -> log-probabilities [B, M, vocab_size] (see Sampler)."""
        if not self.greedy:
            probs = self(logits, history).probs
            assert probs is not None
            return probs.log()
        scores = self._processed(logits, history)[0].log_softmax(-1)
        scores = F.pad(scores, (0, self.vocab_size - scores.shape[-1]), value=-torch.inf)
        return scores.view(*logits.shape[:2], self.vocab_size)

    def _processed(self, logits: Tensor, history: History | None) -> tuple[Tensor, Tensor]:
        """Scores [R, V'], and which lines are usable [R]; in the others token 0 is the only one."""
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        scores = logits[..., : self.valid_vocab].to(wide).flatten(0, 1)
        scores = self._process(scores, history, logits.shape[1])
        usable = scores.amax(-1).isfinite()
        if not bool(usable.all()):
            scores = scores.masked_fill(~usable[:, None], -torch.inf)
            scores[:, 0] = scores[:, 0].where(usable, 0)
        return scores, usable

    def _process(self, scores: Tensor, history: History | None, nodes: int) -> Tensor:
        if self._bias:
            scores = self._bias(_no_ids(scores), scores)
        if not self.uses_history:
            return scores
        assert history is not None, "these processors look back"
        ids, written = node_histories(history, nodes, pad=scores.shape[-1])
        for processor in self._looking_back:
            scores = processor(ids.flatten(0, 1), scores)
        return self._written(written.flatten(0, 1), scores) if self._written else scores

    def _probs(self, scores: Tensor) -> Tensor:
        """scores [R, V'] -> probabilities [R, vocab_size]."""
        if self.config.temperature != 1:
            scores = scores / self.config.temperature
        if self._truncation and scores.device.type == "cpu":
            return self._line_by_line(scores)
        for processor in self._truncation:
            scores = processor(_no_ids(scores), scores)
        probs = scores.softmax(-1)
        return F.pad(probs, (0, self.vocab_size - probs.shape[-1]))

    def _line_by_line(self, scores: Tensor) -> Tensor:
        probs = scores.new_zeros(len(scores), self.vocab_size)
        for line, dense in zip(scores, probs, strict=True):
            self._truncate(Candidates(line)).write(dense)
        return probs

    def _truncate(self, found: Candidates) -> Candidates:
        config = self.config
        if config.top_k:
            found = top_k(found, config.top_k)
        if config.top_p < 1:
            found = top_p(found, config.top_p)
        return min_p(found, config.min_p) if config.min_p else found


def _truncation(config: SamplingOptions) -> list[LogitsProcessor]:
    """transformers' own classes, for devices on which a full sort is fast."""
    processors: list[LogitsProcessor] = []
    if config.top_k:
        processors.append(TopKLogitsWarper(config.top_k))
    if config.top_p < 1:
        processors.append(TopPLogitsWarper(config.top_p))
    if config.min_p:
        processors.append(MinPLogitsWarper(config.min_p))
    return processors


def _no_ids(scores: Tensor) -> Tensor:
    return torch.empty(len(scores), 0, dtype=torch.long, device=scores.device)


def _bias(biases: dict[int, float], vocab: int) -> LogitsProcessor | None:
    for token in biases:
        if not 0 <= token < vocab:
            raise UserError(f"sampling.logit_bias.{token}: the vocabulary has ids 0 to {vocab - 1}")
    if not biases:
        return None
    return SequenceBiasLogitsProcessor([[[token], float(bias)] for token, bias in biases.items()])


def _looking_back(config: SamplingOptions) -> list[LogitsProcessor]:
    processors: list[LogitsProcessor] = []
    if config.repetition_penalty != 1:
        processors.append(RepetitionPenaltyLogitsProcessor(float(config.repetition_penalty)))
    if config.no_repeat_ngram:
        processors.append(NoRepeatNGramLogitsProcessor(config.no_repeat_ngram))
    return processors


def _written(config: SamplingOptions) -> WrittenTokenPenalty | None:
    if config.presence_penalty == 0 and config.frequency_penalty == 0:
        return None
    return WrittenTokenPenalty(config.presence_penalty, config.frequency_penalty)
