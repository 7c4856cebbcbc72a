"""Every outcome of code that draws through a Chance, with its exact probability."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance

T = TypeVar("T")


class EnumeratedChance:
    """Plays a script of choices, then takes the first possible ones; keeps the alternatives."""

    def __init__(self, script: list[int]) -> None:
        self._script = script
        self._alternatives: list[list[int]] = []
        self._keys: set[tuple[int, int, int]] = set()
        self.picks: list[int] = []
        self.weight = 1.0
        """The probability of what has been drawn so far."""

    def sample(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """One scripted token per line of probs [R, V] -> ids [R]."""
        lines = probs.double() / probs.double().sum(-1, keepdim=True)
        picks = [self._pick(line) for line in self._unused(lines.tolist(), rows, positions, stream)]
        return torch.tensor(picks, dtype=torch.long, device=probs.device)

    def accept(self, probability: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """One scripted yes or no per line of probability [R] -> bool [R]."""
        yes = probability.double().clamp(0, 1).tolist()
        lines = self._unused([[1 - p, p] for p in yes], rows, positions, stream)
        picks = [self._pick(line) == 1 for line in lines]
        return torch.tensor(picks, dtype=torch.bool, device=probability.device)

    def scores(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """Scores are continuous: what looks at them has no list of outcomes."""
        raise AssertionError("a draft that shares the target's noise cannot be enumerated")

    def following_script(self) -> list[int] | None:
        """The script of the next outcome; None after the last one."""
        script, alternatives = list(self.picks), list(self._alternatives)
        while script and not alternatives[-1]:
            script.pop()
            alternatives.pop()
        return [*script[:-1], alternatives[-1][0]] if script else None

    def _pick(self, probs: list[float]) -> int:
        possible = [i for i, p in enumerate(probs) if p > 0]
        at = len(self.picks)
        pick = self._script[at] if at < len(self._script) else possible[0]
        self._alternatives.append([i for i in possible if i > pick])
        self.picks.append(pick)
        self.weight *= probs[pick]
        return pick

    def _unused(
        self, lines: list[list[float]], rows: Tensor, positions: Tensor, stream: int
    ) -> list[list[float]]:
        """The lines, if each key is new (draws with equal keys would not be independent)."""
        for row, position in zip(rows.tolist(), positions.tolist(), strict=True):
            key = (row, position, int(stream))
            assert key not in self._keys, f"two draws with the key (row, position, stream) {key}"
            self._keys.add(key)
        return lines


def outcomes(run: Callable[[Chance], T]) -> Iterator[tuple[float, T]]:
    """(probability, result) of `run` for everything its draws can come to."""
    script: list[int] | None = []
    while script is not None:
        chance = EnumeratedChance(script)
        result = run(chance)
        yield chance.weight, result
        script = chance.following_script()
