"""The options of the logits processors and their limits."""

import math
from dataclasses import dataclass, field

from draftmesh.registry import UserError

_COLDEST = 1e-5


@dataclass(frozen=True)
class SamplingOptions:
    """Names and meanings as in transformers' GenerationConfig, and vLLM's for those it lacks.

    temperature: 0 is greedy. top_k: 0 is off. top_p: 1 is off. min_p: 0 is off.
    repetition_penalty: 1 is off; counts prompt and completion. presence_penalty, frequency_penalty:
    0 is off; count the completion only. logit_bias: {token id: added to its logit}.
    no_repeat_ngram: no n tokens in a row occur twice; 0 is off.
    """

    name: str = "processors"
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        """Raises UserError for a value outside its range."""
        warm = self.temperature == 0 or _COLDEST <= self.temperature < math.inf
        _require(warm, "temperature", self.temperature, f"0 (greedy) or at least {_COLDEST}")
        _require(self.top_k >= 0, "top_k", self.top_k, "0 (off) or a number of tokens")
        _require(0 < self.top_p <= 1, "top_p", self.top_p, "in (0, 1]")
        _require(0 <= self.min_p <= 1, "min_p", self.min_p, "in [0, 1]")
        penalty = self.repetition_penalty
        _require(0 < penalty < math.inf, "repetition_penalty", penalty, "above 0")
        for option in ("presence_penalty", "frequency_penalty"):
            value = getattr(self, option)
            _require(math.isfinite(value), option, value, "a finite number")
        for token, bias in self.logit_bias.items():
            _require(bias < math.inf, f"logit_bias.{token}", bias, "below infinity")
        _require(self.no_repeat_ngram >= 0, "no_repeat_ngram", self.no_repeat_ngram, "at least 0")


def _require(holds: bool, option: str, value: float, wanted: str) -> None:
    if not holds:
        raise UserError(f"sampling.{option}={value}: must be {wanted}")
