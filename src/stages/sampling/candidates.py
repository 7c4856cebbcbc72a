"""The tokens of one line that can still be drawn."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Candidates:
    """scores [C] and their token ids [C], increasing; without ids they are the whole vocabulary."""

    scores: Tensor
    tokens: Tensor | None = None

    def at(self, index: Tensor) -> "Candidates":
        """The candidates at index [C'] int64."""
        return Candidates(self.scores[index], index if self.tokens is None else self.tokens[index])

    def where(self, mask: Tensor) -> "Candidates":
        """The candidates for which mask [C] holds."""
        return self.at(mask.nonzero().squeeze(-1))

    def write(self, dense: Tensor) -> None:
        """Put their softmax into dense [V], which is zero elsewhere."""
        probs = self.scores.softmax(-1)
        if self.tokens is None:
            dense[: probs.shape[0]] = probs
        else:
            dense[self.tokens] = probs
