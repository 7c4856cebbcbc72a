"""Small random language models, and drafts of every kind over them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.stages.verifier.exactness import Conditional, Path, Propose, draw_tree

CHAIN = (-1, 0)
LONG_CHAIN = (-1, 0, 1)
TREE = (-1, -1, 0, 0)
BUSH = (-1, -1, 0, 1)


def random_model(vocab: int, seed: int, zeros: float = 0.0) -> Conditional:
    """Random conditionals, some of them with impossible tokens."""
    known: dict[Path, Tensor] = {}

    def after(path: Path) -> Tensor:
        if path not in known:
            generator = torch.Generator().manual_seed(hash((seed, vocab, *path)) % 2**31)
            p = torch.rand(vocab, generator=generator, dtype=torch.float64) ** 2
            p[torch.rand(vocab, generator=generator) < zeros] = 0
            p[int(torch.randint(vocab, (1,), generator=generator))] += 0.1
            known[path] = p / p.sum()
        return known[path]

    return after


def one_hot_tree(tokens: tuple[int, ...], parents: tuple[int, ...]) -> Proposal:
    """Tokens chosen without chance."""
    return Proposal(
        torch.tensor([tokens]),
        torch.tensor([parents]),
        torch.ones(1, len(tokens), dtype=torch.bool),
    )


def mixed(proposal: Proposal, node: int, token: int) -> Proposal:
    """A cascade: one node of a drawn tree is chosen without chance instead."""
    assert proposal.q_index is not None
    tokens, index = proposal.tokens.clone(), proposal.q_index.clone()
    tokens[0, node], index[0, node] = token, -1
    return replace(proposal, tokens=tokens, q_index=index)


def stopping_chain(draft: Conditional, chance: Chance, stop: int) -> Proposal:
    """A chain that ends after the token `stop`, wherever it comes."""
    proposal = draw_tree(draft, LONG_CHAIN, chance)
    ended = (proposal.tokens == stop).long().cumsum(1) - (proposal.tokens == stop).long()
    return replace(proposal, valid=ended == 0)


@dataclass(frozen=True)
class Case:
    """A target and a way to draft for it."""

    name: str
    target: Conditional
    propose: Propose
    chain: bool


def _cases() -> list[Case]:
    p, q = random_model(3, 1), random_model(3, 2)
    holes_p, holes_q = random_model(4, 3, 0.4), random_model(4, 4, 0.4)

    def drawn(
        draft: Conditional, parents: tuple[int, ...], replacement: bool = True
    ) -> Callable[[Chance], Proposal]:
        return lambda chance: draw_tree(draft, parents, chance, replacement=replacement)

    return [
        Case("nothing", p, lambda _: Proposal.empty(1, torch.device("cpu")), True),
        Case("chain", p, drawn(q, CHAIN), True),
        Case("long chain", p, drawn(q, LONG_CHAIN), True),
        Case("chain, q = p", p, drawn(p, CHAIN), True),
        Case("chain, impossible tokens", holes_p, drawn(holes_q, CHAIN), True),
        Case("chain that stops", p, lambda c: stopping_chain(q, c, 1), True),
        Case("one-hot chain", p, lambda _: one_hot_tree((2, 1), CHAIN), True),
        Case("one-hot chain, impossible", holes_p, lambda _: one_hot_tree((3, 0), CHAIN), True),
        Case("cascade chain", p, lambda c: mixed(draw_tree(q, CHAIN, c), 1, 2), True),
        Case("one-hot tree", p, lambda _: one_hot_tree((0, 2, 1, 2), TREE), False),
        Case("tree with replacement", p, drawn(q, TREE), False),
        Case("tree without replacement", p, drawn(q, TREE, False), False),
        Case("bush with replacement", p, drawn(q, BUSH), False),
        Case("bush without replacement", p, drawn(q, BUSH, False), False),
        Case("three siblings with replacement", p, drawn(q, (-1, -1, -1)), False),
        Case("three siblings without", p, drawn(q, (-1, -1, -1), False), False),
        Case("siblings, q = p", p, drawn(p, (-1, -1), False), False),
        Case("tree, impossible tokens", holes_p, drawn(holes_q, (-1, -1, 0), False), False),
        Case("more siblings than q has tokens", holes_p, drawn(holes_q, (-1,) * 4, False), False),
        Case("cascade of siblings", p, lambda c: _cascade(q, c, True), False),
        Case("cascade of siblings without", p, lambda c: _cascade(q, c, False), False),
    ]


def _cascade(draft: Conditional, chance: Chance, replacement: bool) -> Proposal:
    """Two drawn siblings with one chosen without chance between them."""
    drawn = draw_tree(draft, (-1, -1), chance, replacement=replacement)
    first, second = drawn.tokens[0].tolist()
    return Proposal(
        torch.tensor([[first, 2, second]]),
        torch.tensor([[-1, -1, -1]]),
        torch.ones(1, 3, dtype=torch.bool),
        drawn.q,
        torch.tensor([[0, -1, 0]]),
        replacement=replacement,
    )


CASES = {case.name: case for case in _cases()}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Every kind of draft."""
    return CASES[request.param]


@pytest.fixture(params=[name for name, case in CASES.items() if case.chain])
def chain_case(request: pytest.FixtureRequest) -> Case:
    """Every kind of chain."""
    return CASES[request.param]


@pytest.fixture
def model() -> Callable[..., Conditional]:
    """random_model(vocab, seed, zeros)."""
    return random_model
