"""Known ways to get it wrong, each of which the exact test must catch."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome, Verifier
from draftmesh.stages.sampling.enumerated import outcomes
from draftmesh.stages.verifier import block as block_module
from draftmesh.stages.verifier import ratio as ratio_module
from draftmesh.stages.verifier.block import Block
from draftmesh.stages.verifier.exactness import (
    Conditional,
    Propose,
    draw_tree,
    emitted_distribution,
    paths_of,
    plain_distribution,
    total_variation,
    verify_once,
)
from draftmesh.stages.verifier.match import Match
from draftmesh.stages.verifier.ratio import Ratio

RATIO, MATCH, BLOCK = Ratio(Ratio.Config()), Match(Match.Config()), Block(Block.Config())
Model = Callable[..., Conditional]


def error(verifier: Verifier, propose: Propose, target: Conditional, length: int = 2) -> float:
    emitted = emitted_distribution(verifier, propose, target, length)
    return total_variation(emitted, plain_distribution(target, length))


def constant(*p: float) -> Conditional:
    return lambda _: torch.tensor(p, dtype=torch.float64)


def claiming(proposal: Proposal, q: Conditional) -> Proposal:
    """Say that each node of a chain was drawn from q."""
    paths = [(), *paths_of(proposal)[:-1]]
    steps = torch.arange(len(paths)).unsqueeze(0)
    return replace(proposal, q=torch.stack([q(path) for path in paths])[None], q_index=steps)


def test_argmax_draft_that_claims_its_softmax() -> None:
    p, q = constant(0.6, 0.4), constant(0.8, 0.2)
    best = Proposal(torch.tensor([[0]]), torch.tensor([[-1]]), torch.tensor([[True]]))
    emitted = emitted_distribution(RATIO, lambda _: claiming(best, q), p, 1)
    assert emitted.tolist() == pytest.approx([0.75, 0.25])
    assert error(RATIO, lambda _: best, p) < 1e-12


@pytest.mark.parametrize("verifier", [RATIO, BLOCK], ids=["ratio", "block"])
def test_top_k_draft_that_claims_the_whole_distribution(verifier: Verifier, model: Model) -> None:
    p, q = model(4, 1), model(4, 2)

    def top_two(path: tuple[int, ...]) -> Tensor:
        best = q(path).topk(2)
        cut = torch.zeros_like(q(path)).scatter(0, best.indices, best.values)
        return cut / cut.sum()

    def claims(chance: Chance) -> Proposal:
        return claiming(draw_tree(top_two, (-1, 0), chance), q)

    assert error(verifier, claims, p) > 0.05
    assert error(verifier, lambda c: draw_tree(top_two, (-1, 0), c), p) < 1e-12


def dropping(q: Conditional) -> Propose:
    """Drops a drawn token that its own q finds unlikely."""

    def propose(chance: Chance) -> Proposal:
        proposal = draw_tree(q, (-1,), chance)
        return replace(proposal, valid=q(())[proposal.tokens] > 0.2)

    return propose


def test_dropping_unlikely_draws_biases_the_ratio_test_but_not_match(model: Model) -> None:
    p, q = model(4, 3), model(4, 4)
    assert error(RATIO, dropping(q), p) > 0.02
    assert error(BLOCK, dropping(q), p) > 0.02
    assert error(MATCH, dropping(q), p) < 1e-12


def test_drawing_without_replacement_but_testing_with(model: Model) -> None:
    p, q = model(4, 5), model(4, 6)

    def propose(chance: Chance) -> Proposal:
        return replace(draw_tree(q, (-1, -1), chance, replacement=False), replacement=True)

    assert error(RATIO, propose, p) > 1e-3


class DrawPerPath(Match):
    """Medusa's nucleus mode: each path from root to leaf draws its own tokens, the longest wins."""

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        assert target.probs is not None
        parents = proposal.parents[0].tolist()
        best: tuple[list[int], Tensor] | None = None
        for leaf in set(range(len(parents))) - set(parents):
            chain = [leaf]
            while parents[chain[0]] >= 0:
                chain.insert(0, parents[chain[0]])
            path: list[int] = []
            for depth, node in enumerate([*chain, None]):
                at = path[-1] + 1 if path else 0
                token = chance.sample(
                    target.probs[:, at], positions, positions + depth, Stream.TARGET + leaf
                )
                if node is None or int(token) != int(proposal.tokens[0, node]):
                    break
                path.append(node)
            if best is None or len(path) > len(best[0]):
                best = path, token
        assert best is not None
        padded = best[0] + [-1] * (proposal.size - len(best[0]))
        return Outcome(torch.tensor([padded]), torch.tensor([len(best[0])]), best[1])


def test_an_independent_draw_for_every_path() -> None:
    p = constant(0.5, 0.3, 0.1, 0.1)
    tree = Proposal(
        torch.tensor([[0, 1, 2, 3]]),
        torch.tensor([[-1, 0, 0, 0]]),
        torch.ones(1, 4, dtype=torch.bool),
    )
    verifier = DrawPerPath(Match.Config())
    found = list(outcomes(lambda c: verify_once(verifier, tree, p, c)))
    assert sum(w for w, (tokens, _) in found if tokens[0] == 0) == pytest.approx(0.875)
    assert error(verifier, lambda _: tree, p) > 0.3
    assert error(MATCH, lambda _: tree, p) < 1e-12


def test_inverted_acceptance_ratio(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ratio_module, block_module):
        monkeypatch.setattr(module, "ratio", lambda p, q: q / p)
    p, q = model(3, 1), model(3, 2)
    for verifier in (RATIO, BLOCK):
        assert error(verifier, lambda c: draw_tree(q, (-1, 0), c), p) > 0.05
    assert error(RATIO, lambda c: draw_tree(q, (-1, -1), c), p) > 0.05


RESIDUALS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "absolute value instead of a clamp": lambda p, q: (p - q).abs() / (p - q).abs().sum(),
    "all of p": lambda p, q: p,
    "clamped below only": lambda p, q: torch.minimum(p, q) / torch.minimum(p, q).sum(),
}


@pytest.mark.parametrize("residual", RESIDUALS.values(), ids=RESIDUALS)
def test_wrong_residual(
    residual: Callable[[Tensor, Tensor], Tensor], model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (ratio_module, block_module):
        monkeypatch.setattr(module, "residual", residual)
    p, q = model(3, 1), model(3, 2)
    for verifier in (RATIO, BLOCK):
        assert error(verifier, lambda c: draw_tree(q, (-1, 0), c), p) > 0.02
    assert error(RATIO, lambda c: draw_tree(q, (-1, -1), c), p) > 0.02


def test_residual_that_is_not_renormalised(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain only draws from its residual, so it takes a second sibling to see this."""
    monkeypatch.setattr(ratio_module, "residual", lambda p, q: (p - q).clamp(min=0))
    p, q = model(3, 1), model(3, 2)
    assert error(RATIO, lambda c: draw_tree(q, (-1, -1), c), p) > 0.02
    assert error(RATIO, lambda c: draw_tree(q, (-1, 0), c), p) < 1e-12


class RawBonus:
    """Draws the bonus token as if temperature and top-p had not been applied."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.accept = chance.accept

    def sample(self, probs: Tensor, rows: Tensor, positions: Tensor, stream: int) -> Tensor:
        raw = probs.sqrt() + 0.05 if stream == Stream.TARGET else probs
        return self.chance.sample(raw, rows, positions, stream)


class Unprocessed(Ratio):
    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        return super().verify(proposal, target, RawBonus(chance), positions)


def test_bonus_from_unprocessed_logits(model: Model) -> None:
    p, q = model(3, 1), model(3, 2)
    assert error(Unprocessed(Ratio.Config()), lambda c: draw_tree(q, (-1,), c), p) > 0.02


class ForgetsWhatWasDrawn(Block):
    """Takes token-wise acceptance for granted: keeps the last test that any token passes."""

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        keep = block_module._keeps
        try:
            block_module._keeps = lambda proposal, probs, weights: weights[:, 1:]  # type: ignore
            return super().verify(proposal, target, chance, positions)
        finally:
            block_module._keeps = keep


def test_block_with_the_weights_as_acceptance(model: Model) -> None:
    p, q = model(3, 1), model(3, 2)
    broken = ForgetsWhatWasDrawn(Block.Config())
    assert error(broken, lambda c: draw_tree(q, (-1, 0, 1), c), p, 3) > 0.02
