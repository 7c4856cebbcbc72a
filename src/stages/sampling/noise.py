"""Counter-based noise: every draw is a function of (seed, request, position, stream, token)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from draftmesh.registry.contracts.request import Request

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_DENSE = 4  # with more than a quarter of the tokens possible, whole rows are faster than an index
_CACHED = 1 << 16


def _signed(word: int) -> int:
    """A 64-bit word as the int64 with the same bits."""
    return word - (1 << 64) if word >> 63 else word


def _shift_(words: Tensor, bits: int) -> Tensor:
    """words >> bits as unsigned words (torch shifts int64 arithmetically)."""
    return (words >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _mix_(words: Tensor) -> Tensor:
    """The finaliser of splitmix64, in place; integer products wrap, so all devices agree."""
    words ^= _shift_(words, 30)
    words *= _signed(_MIX_1)
    words ^= _shift_(words, 27)
    words *= _signed(_MIX_2)
    words ^= _shift_(words, 31)
    return words


def absorb(state: Tensor, values: Tensor | int) -> Tensor:
    """Hash one more number into 64-bit states: int64 tensors that broadcast -> int64."""
    if isinstance(values, int):
        return _mix_(state + _signed((values + 1) * _GOLDEN % (1 << 64)))
    return _mix_(state + (values + 1) * _signed(_GOLDEN))


def uniform(words: Tensor) -> Tensor:
    """Random words (overwritten) -> float64 uniforms, odd multiples of 2**-53: never 0 or 1."""
    return _shift_(words, 12).double().add_(0.5).mul_(2.0**-52)


class NoiseChance:
    """Chance whose draws depend on a request's seed, index and position, and on nothing else.

    seeds [B] and indices [B] int64 are those of the batch's requests. The hash is that of Steele,
    Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), absorbing the key
    number by number.
    """

    def __init__(self, seeds: Tensor, indices: Tensor) -> None:
        self._rows = absorb(absorb(torch.zeros_like(seeds), seeds), indices)

    @staticmethod
    def of(requests: Sequence[Request], device: torch.device) -> "NoiseChance":
        """The chance of a batch of requests."""
        seeds = torch.tensor([_signed(r.seed % (1 << 64)) for r in requests], device=device)
        return NoiseChance(seeds, torch.tensor([r.index for r in requests], device=device))

    def select(self, keep: Tensor) -> None:
        """Keep only the rows in keep [B'] int64, in that order."""
        self._rows = self._rows[keep]

    def _keys(self, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        return absorb(absorb(self._rows[rows], positions), stream)

    def accept(self, probability: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """True with the given probability [R] (values outside [0, 1] are clamped) -> bool [R]."""
        return uniform(absorb(self._keys(rows, positions, stream), 0)) < probability

    def sample(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """Draw one token per line: probs [R, V] >= 0 with a positive entry per line -> ids [R].

        The token with the largest p / E wins, E = -log(u) an exponential variable keyed by the
        token: the Gumbel-max rule log p - log E without a second logarithm. Only tokens of nonzero
        probability are looked at.
        """
        keys = self._keys(rows, positions, stream)
        count, vocab = probs.shape
        found = probs.reshape(-1).nonzero().squeeze(-1)
        if found.shape[0] * _DENSE > count * vocab:
            return _sample_dense(probs, keys)
        lines = found // vocab
        tokens = found - lines * vocab
        scores = _race(probs.reshape(-1)[found], keys[lines], tokens)
        return tokens[_segment_argmax(scores, lines, count)]

    def scores(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        """probs [R, V] -> p / E [R, V] float64, whose largest entries `sample` would draw first.

        Lines with equal keys share their noise, which is made once.
        """
        keys, lines = self._keys(rows, positions, stream).unique(return_inverse=True)
        tokens = torch.arange(probs.shape[1], device=probs.device)
        arrival = uniform(absorb(keys.unsqueeze(-1), tokens)).log_().neg_()
        return probs.double() / arrival[lines]


def _sample_dense(probs: Tensor, keys: Tensor) -> Tensor:
    """A few lines at a time, so that the intermediate results stay in the processor's cache."""
    ids = torch.arange(probs.shape[1], device=probs.device)
    lines = max(1, _CACHED // probs.shape[1])
    parts = zip(probs.split(lines), keys.unsqueeze(-1).split(lines), strict=True)
    return torch.cat([_race(part, key, ids).argmax(-1) for part, key in parts])


def _race(weights: Tensor, keys: Tensor, tokens: Tensor) -> Tensor:
    """p / E in float64 for each candidate; 0 where p is 0."""
    arrival = uniform(absorb(keys, tokens)).log_().neg_()
    return torch.div(weights.double(), arrival, out=arrival)


def _segment_argmax(scores: Tensor, lines: Tensor, count: int) -> Tensor:
    """Index into scores of the largest entry of each line; lines is sorted, every line occurs."""
    if count == 1:
        return scores.argmax(0, keepdim=True)
    sizes = lines.bincount(minlength=count)
    starts = sizes.cumsum(0) - sizes
    offsets = torch.arange(lines.shape[0], device=lines.device) - starts[lines]
    table = scores.new_zeros(count, int(sizes.max()))
    table[lines, offsets] = scores
    return starts + table.argmax(-1)
