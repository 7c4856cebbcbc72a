"""The sampling options as arguments of transformers' `generate`."""

from typing import Any

from draftmesh.registry import UserError
from draftmesh.registry.contracts.sampling import Sampler
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors


def check_sampling(options: Any) -> None:
    """Raises UserError for options that transformers does not have."""
    if not isinstance(options, SamplingOptions):
        raise UserError("engine=transformers needs sampling.name=processors")
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(options, name):
            raise UserError(f"sampling.{name}: engine=transformers has none; use engine=native")


def sampling_arguments(sampler: Sampler) -> dict[str, Any]:
    """Every option, also those that are off, so that no default of transformers slips in."""
    assert isinstance(sampler, Processors)
    options = sampler.config
    found: dict[str, Any] = {
        "do_sample": not sampler.greedy,
        "num_beams": 1,
        "repetition_penalty": options.repetition_penalty,
        "no_repeat_ngram_size": options.no_repeat_ngram,
    }
    if not sampler.greedy:
        found |= {"temperature": options.temperature, "top_k": options.top_k}
        found |= {"top_p": options.top_p, "min_p": options.min_p or None}
    if options.logit_bias:
        found["sequence_bias"] = [[[token], bias] for token, bias in options.logit_bias.items()]
    padding = range(sampler.valid_vocab, sampler.vocab_size)
    if padding:
        found["suppress_tokens"] = list(padding)
    return found
