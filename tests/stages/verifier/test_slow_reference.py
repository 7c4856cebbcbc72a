"""Ragged trees of several rows against a plain, row-by-row reference with the same draws."""

from dataclasses import dataclass

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome, Verifier
from draftmesh.stages.sampling.noise import NoiseChance
from draftmesh.stages.verifier.block import Block
from draftmesh.stages.verifier.match import Match
from draftmesh.stages.verifier.ratio import Ratio
from draftmesh.stages.verifier.typical import Typical

VOCAB = 5


@dataclass(frozen=True)
class Example:
    """A proposal with random distributions; positions differ between rows."""

    proposal: Proposal
    probs: Tensor
    positions: Tensor
    seeds: Tensor

    def chance(self) -> NoiseChance:
        return NoiseChance(self.seeds, torch.arange(len(self.seeds)))


def distributions(generator: torch.Generator, *shape: int) -> Tensor:
    p = torch.rand(*shape, VOCAB, generator=generator, dtype=torch.float64) ** 3
    p = p * (torch.rand(*shape, VOCAB, generator=generator) < 0.7)
    p[..., :3] *= 4
    p[..., 2] += 0.05
    return p / p.sum(-1, keepdim=True)


@st.composite
def examples(draw: st.DrawFn, chain: bool = False) -> Example:
    rows, nodes = draw(st.integers(1, 3)), draw(st.integers(0, 7))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    parents = [
        [
            n - 1 if chain else draw(st.sampled_from([n - 1, n - 1, n // 2 - 1, -1]))
            for n in range(nodes)
        ]
        for _ in range(rows)
    ]
    valid = [[True] * nodes for _ in range(rows)]
    for row in range(rows):
        for node in range(nodes):
            above = parents[row][node]
            valid[row][node] = (above < 0 or valid[row][above]) and draw(st.integers(0, 5)) > 0
    shape = (rows, nodes)
    index = torch.tensor(parents).view(shape).long() + 1
    hot = torch.rand(shape, generator=generator) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    known = draw(st.booleans())
    # Few different tokens, so that siblings repeat and children match.
    proposal = Proposal(
        torch.randint(0, 3, shape, generator=generator),
        torch.tensor(parents).view(shape).long(),
        torch.tensor(valid).view(shape).bool(),
        distributions(generator, rows, nodes + 1) if known else None,
        torch.where(hot, -1, index) if known else None,
        replacement=draw(st.booleans()),
    )
    return Example(
        proposal,
        distributions(generator, rows, nodes + 1),
        torch.randint(1, 50, (rows,), generator=generator),
        torch.randint(0, 10**6, (rows,), generator=generator),
    )


class Row:
    """One row of an example, in Python's own terms."""

    def __init__(self, example: Example, row: int) -> None:
        self.example, self.row, self.chance = example, row, example.chance()
        proposal = example.proposal
        self.tokens = proposal.tokens[row].tolist()
        self.parents = proposal.parents[row].tolist()
        self.valid = proposal.valid[row].tolist()
        self.path: list[int] = []

    @property
    def at(self) -> int:
        return self.path[-1] if self.path else -1

    def children(self) -> list[int]:
        return [n for n, p in enumerate(self.parents) if p == self.at and self.valid[n]]

    def p(self) -> list[float]:
        return self.example.probs[self.row, self.at + 1].tolist()

    def q(self, node: int, earlier: list[int]) -> list[float]:
        proposal = self.example.proposal
        index = -1 if proposal.q_index is None else int(proposal.q_index[self.row, node])
        if index < 0 or proposal.q is None or proposal.q_index is None:
            return [float(token == self.tokens[node]) for token in range(VOCAB)]
        q = proposal.q[self.row, index].tolist()
        if not proposal.replacement:
            for other in earlier:
                if int(proposal.q_index[self.row, other]) == index:
                    q[self.tokens[other]] = 0.0
        return [x / sum(q) for x in q] if sum(q) > 0 else q

    def draw(self, p: list[float], stream: int) -> int:
        probs = torch.tensor([p], dtype=torch.float64)
        return int(self.chance.sample(probs, *self._key(len(self.path)), stream))

    def test(self, p: float, stream: int, depth: int | None = None) -> bool:
        key = self._key(len(self.path) if depth is None else depth)
        return bool(self.chance.accept(torch.tensor([p], dtype=torch.float64), *key, stream))

    def _key(self, depth: int) -> tuple[Tensor, Tensor]:
        return torch.tensor([self.row]), self.example.positions[self.row : self.row + 1] + depth


def residual(p: list[float], q: list[float]) -> list[float]:
    left = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    return [x / sum(left) for x in left] if sum(left) > 0 else p


def match(row: Row) -> int:
    while True:
        choice = row.draw(row.p(), Stream.TARGET)
        node = next((n for n in row.children() if row.tokens[n] == choice), None)
        if node is None:
            return choice
        row.path.append(node)


def ratio(row: Row) -> int:
    while True:
        p, children = row.p(), row.children()
        if not children:
            return row.draw(p, Stream.TARGET)
        for sibling, node in enumerate(children):
            q, token = row.q(node, children[:sibling]), row.tokens[node]
            if row.test(p[token] / q[token] if q[token] > 0 else 0.0, Stream.ACCEPT + sibling):
                row.path.append(node)
                break
            p = residual(p, q)
        else:
            return row.draw(p, Stream.RESIDUAL)


def block(row: Row) -> int:
    length = sum(row.valid)
    weights, kept = [1.0], 0
    for node in range(length):
        p, q, token = row.example.probs[row.row, node].tolist(), row.q(node, []), row.tokens[node]
        weights.append(min(1.0, weights[-1] * p[token] / q[token]) if q[token] > 0 else 0.0)
    for i in range(1, length + 1):
        if i == length:
            keep = weights[i]
        else:
            p, q = row.example.probs[row.row, i].tolist(), row.q(i, [])
            r = sum(max(weights[i] * a - b, 0.0) for a, b in zip(p, q, strict=True))
            keep = r / (r + 1 - weights[i]) if r + 1 - weights[i] > 0 else 1.0
        if row.test(keep, Stream.ACCEPT + i, depth=0):
            kept = i
    row.path = list(range(kept))
    p = row.p()
    if kept == length:
        return row.draw(p, Stream.TARGET)
    return row.draw(residual([weights[kept] * x for x in p], row.q(kept, [])), Stream.RESIDUAL)


def typical(row: Row) -> int:
    limits = []
    for p in row.example.probs[row.row].tolist():
        entropy = -sum(x * torch.tensor(x).double().log().item() for x in p if x > 0)
        limits.append(min(0.09, 0.3 * 2.718281828459045**-entropy))
    best: tuple[int, float] = (0, 0.0)
    for leaf in range(len(row.tokens)):
        path = [leaf]
        while row.parents[path[0]] >= 0:
            path.insert(0, row.parents[path[0]])
        likelihood = 1.0
        for node in path:
            p = float(row.example.probs[row.row, row.parents[node] + 1, row.tokens[node]])
            likelihood *= p if row.valid[node] and p > limits[row.parents[node] + 1] else 0.0
        if likelihood > 0 and (len(path), likelihood) > (best[0], best[1] * (1 + 1e-9)):
            best, row.path = (len(path), likelihood), path
    p = row.p()
    return p.index(max(p))


def agree(outcome: Outcome, example: Example, reference) -> None:  # type: ignore[no-untyped-def]
    size = example.proposal.size
    for index in range(len(example.positions)):
        row = Row(example, index)
        bonus = reference(row)
        assert outcome.path[index].tolist() == row.path + [-1] * (size - len(row.path))
        assert int(outcome.accepted[index]) == len(row.path)
        assert int(outcome.bonus[index]) == bonus


def run(verifier: Verifier, example: Example) -> Outcome:
    target = Distribution(probs=example.probs)
    return verifier.verify(example.proposal, target, example.chance(), example.positions)


@settings(max_examples=100, deadline=None)
@given(examples())
def test_match(example: Example) -> None:
    agree(run(Match(Match.Config()), example), example, match)


@settings(max_examples=200, deadline=None)
@given(examples())
def test_ratio_on_trees(example: Example) -> None:
    agree(run(Ratio(Ratio.Config()), example), example, ratio)


def prefix(example: Example) -> Example:
    """The chains that a draft may hand over: valid is a prefix."""
    assert bool((example.proposal.valid.long().diff(dim=1) <= 0).all())
    return example


@settings(max_examples=100, deadline=None)
@given(examples(chain=True))
def test_ratio_on_chains(example: Example) -> None:
    agree(run(Ratio(Ratio.Config()), prefix(example)), example, ratio)


@settings(max_examples=100, deadline=None)
@given(examples(chain=True))
def test_block(example: Example) -> None:
    agree(run(Block(Block.Config()), prefix(example)), example, block)


@settings(max_examples=100, deadline=None)
@given(examples())
def test_typical(example: Example) -> None:
    agree(run(Typical(Typical.Config()), example), example, typical)


@settings(max_examples=100, deadline=None)
@given(examples())
def test_greedy_is_the_same_for_all_and_never_leaves_the_targets_choices(example: Example) -> None:
    choices = torch.where(example.probs.argmax(-1) > 2, 0, example.probs.argmax(-1))
    target = Distribution(tokens=choices)
    verifiers: list[Verifier] = [
        Match(Match.Config()),
        Ratio(Ratio.Config()),
        Typical(Typical.Config()),
    ]
    proposal = example.proposal
    for verifier in verifiers:
        outcome = verifier.verify(proposal, target, example.chance(), example.positions)
        for index in range(len(choices)):
            row = Row(example, index)
            while True:
                choice = int(choices[index, row.at + 1])
                node = next((n for n in row.children() if row.tokens[n] == choice), None)
                if node is None:
                    break
                row.path.append(node)
            assert outcome.path[index].tolist()[: len(row.path)] == row.path
            assert int(outcome.accepted[index]) == len(row.path)
            assert int(outcome.bonus[index]) == choice


def test_the_examples_are_not_trivial() -> None:
    """Rejections, partial and full acceptance all occur, with later siblings and mixed nodes."""
    seen: set[str] = set()

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(examples())
    def look(example: Example) -> None:
        outcome = run(Ratio(Ratio.Config()), example)
        parents = example.proposal.parents
        for row, accepted in enumerate(outcome.accepted.tolist()):
            path = outcome.path[row, :accepted].tolist()
            last = path[-1] if path else -1
            more = bool(((parents[row] == last) & example.proposal.valid[row]).any())
            seen.add(f"accepted {min(accepted, 2)}, {'rejected' if more else 'leaf'}")
            if any(bool((parents[row, :node] == parents[row, node]).any()) for node in path):
                seen.add("later sibling accepted")
        if example.proposal.q_index is not None:
            seen.update(f"one-hot {bool(hot)}" for hot in (example.proposal.q_index < 0).flatten())

    look()
    wanted = {f"accepted {n}, {end}" for n in range(3) for end in ("rejected", "leaf")}
    assert wanted | {"later sibling accepted", "one-hot True", "one-hot False"} <= seen
