import math

import pytest
import torch
from scipy.stats import chisquare, kstest

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.request import Request
from draftmesh.stages.sampling.noise import NoiseChance, absorb, uniform

ROWS = 20_000


def chance(count: int = ROWS, seed: int = 7) -> NoiseChance:
    return NoiseChance(torch.full((count,), seed), torch.arange(count))


def rows(count: int = ROWS) -> torch.Tensor:
    return torch.arange(count)


def uniforms(noise: NoiseChance, positions: torch.Tensor, stream: int) -> torch.Tensor:
    """The uniforms behind `accept`, found by bisection: 20 bits of each."""
    low = torch.zeros(len(positions), dtype=torch.float64)
    for bit in range(1, 21):
        middle = low + 2.0**-bit
        below = noise.accept(middle, rows(len(positions)), positions, stream)
        low = torch.where(below, low, middle)
    return low


def test_uniforms_never_reach_zero_or_one() -> None:
    words = torch.tensor([0, -1, 1, 2**63 - 1, -(2**63)])
    u = uniform(words)
    assert u.dtype == torch.float64
    assert bool(((u > 0) & (u < 1)).all())
    assert u[1] == 1 - 2.0**-53


def test_acceptance_has_the_given_probability() -> None:
    zero = torch.zeros(ROWS, dtype=torch.long)
    u = uniforms(chance(), zero, Stream.ACCEPT)
    assert kstest(u.numpy(), "uniform").pvalue > 1e-3
    never = torch.full((ROWS,), -0.5), torch.full((ROWS,), 0.0)
    assert not any(bool(chance().accept(p, rows(), zero, 0).any()) for p in never)
    always = torch.full((ROWS,), 1.0), torch.full((ROWS,), 1.5)
    assert all(bool(chance().accept(p, rows(), zero, 0).all()) for p in always)


@pytest.mark.parametrize("sparse", [False, True])
def test_tokens_follow_the_distribution(sparse: bool) -> None:
    vocab = 64 if sparse else 6
    p = torch.zeros(vocab, dtype=torch.float64)
    p[:6] = torch.tensor([0.4, 0.3, 0.0, 0.15, 0.1, 0.05], dtype=torch.float64)
    positions = torch.arange(ROWS) % 17
    drawn = chance().sample(p.expand(ROWS, -1), rows(), positions, Stream.TARGET)
    counts = drawn.bincount(minlength=vocab).double()
    assert bool((counts[p == 0] == 0).all())
    possible = p > 0
    assert chisquare(counts[possible].numpy(), (ROWS * p[possible]).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("other", ["position", "stream", "seed", "request", "sibling"])
def test_keys_that_differ_in_one_part_are_independent(other: str) -> None:
    p = torch.full((ROWS, 4), 0.25)
    zero, one = torch.zeros(ROWS, dtype=torch.long), torch.ones(ROWS, dtype=torch.long)
    first = chance().sample(p, rows(), zero, Stream.TARGET)
    second = {
        "position": lambda: chance().sample(p, rows(), one, Stream.TARGET),
        "stream": lambda: chance().sample(p, rows(), zero, Stream.DRAFT),
        "sibling": lambda: chance().sample(p, rows(), zero, Stream.TARGET + 1),
        "seed": lambda: chance(seed=8).sample(p, rows(), zero, Stream.TARGET),
        "request": lambda: chance().sample(p, rows().roll(1), zero, Stream.TARGET),
    }[other]()
    table = (first * 4 + second).bincount(minlength=16).numpy()
    assert chisquare(table).pvalue > 1e-3


def test_nothing_but_the_key_matters() -> None:
    torch.manual_seed(0)
    p = torch.rand(5, 50, dtype=torch.float64)
    p[:, ::2] *= torch.rand(5, 25) < 0.1
    positions = torch.tensor([3, 9, 4, 4, 11])
    seeds, indices = torch.tensor([5, 5, -3, 2**62, 5]), torch.tensor([0, 1, 2, 3, 4])
    together = NoiseChance(seeds, indices).sample(p, rows(5), positions, Stream.TARGET)
    alone = torch.cat(
        [
            NoiseChance(seeds[i : i + 1], indices[i : i + 1]).sample(
                p[i : i + 1], rows(1), positions[i : i + 1], Stream.TARGET
            )
            for i in range(5)
        ]
    )
    assert together.tolist() == alone.tolist()
    noise = NoiseChance(seeds, indices)
    keep = torch.tensor([4, 1])
    noise.select(keep)
    kept = noise.sample(p[keep], rows(2), positions[keep], Stream.TARGET)
    assert kept.tolist() == together[keep].tolist()


def test_dense_and_sparse_lines_draw_alike() -> None:
    torch.manual_seed(1)
    p = torch.rand(40, 30, dtype=torch.float64)
    wide = torch.zeros(40, 1000, dtype=torch.float64)
    wide[:, :30] = p
    drawn = [chance(40).sample(x, rows(40), rows(40), Stream.DRAFT).tolist() for x in (p, wide)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 5


def test_similar_distributions_draw_the_same_token_more_often_than_independent_ones() -> None:
    p = torch.tensor([0.3, 0.3, 0.2, 0.2]).expand(ROWS, -1)
    q = torch.tensor([0.35, 0.25, 0.2, 0.2]).expand(ROWS, -1)
    zero = torch.zeros(ROWS, dtype=torch.long)
    coupled = chance().sample(p, rows(), zero, 0) == chance().sample(q, rows(), zero, 0)
    assert float(coupled.double().mean()) > 0.85


WORD = (1 << 64) - 1


def mixed(state: int, value: int) -> int:
    """One number absorbed, in Python's own integers."""
    x = (state + (value + 1) * 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def test_hash_is_splitmix64() -> None:
    assert mixed(0, 0) == 0xE220A8397B1DCDAF  # its published first output for seed 0
    states = torch.tensor([0, 5, -1])
    ours = [word % (1 << 64) for word in absorb(states, 3).tolist()]
    assert ours == [mixed(state % (1 << 64), 3) for state in states.tolist()]
    assert absorb(states, torch.tensor(3)).tolist() == absorb(states, 3).tolist()


def test_draws_equal_a_plain_reference() -> None:
    """A change of the hash would silently change every seeded result."""
    drawn = chance(8).sample(torch.full((8, 100), 0.01), rows(8), rows(8) * 5, Stream.RESIDUAL)
    for row, token in enumerate(drawn.tolist()):
        key = mixed(mixed(mixed(mixed(0, 7), row), row * 5), int(Stream.RESIDUAL))
        u = [((mixed(key, t) >> 12) + 0.5) * 2.0**-52 for t in range(100)]
        assert token == min(range(100), key=lambda t: -math.log(u[t]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares a GPU with the CPU")
def test_devices_draw_alike() -> None:
    p = torch.rand(200, 300, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    here = chance(200).sample(p, rows(200), rows(200), Stream.TARGET)
    noise = NoiseChance(torch.full((200,), 7).cuda(), rows(200).cuda())
    there = noise.sample(p.cuda(), rows(200).cuda(), rows(200).cuda(), Stream.TARGET)
    assert here.tolist() == there.tolist()


def test_requests_key_the_noise() -> None:
    requests = [
        Request(str(i), "", (1,), index=i, seed=seed, max_new_tokens=1)
        for i, seed in enumerate([3, 2**64 - 1])
    ]
    made = NoiseChance.of(requests, torch.device("cpu"))
    same = NoiseChance(torch.tensor([3, -1]), torch.tensor([0, 1]))
    p = torch.full((2, 100), 0.01)
    draws = [c.sample(p, rows(2), rows(2), 0).tolist() for c in (made, same)]
    assert draws[0] == draws[1]
