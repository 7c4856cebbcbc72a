"""The exact distribution of what a verifier emits, on vocabularies small enough to enumerate."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome, Verifier
from draftmesh.stages.sampling.enumerated import outcomes

Path = tuple[int, ...]
Conditional = Callable[[Path], Tensor]
"""The next token's distribution [V] after the tokens that follow the root."""

Propose = Callable[[Chance], Proposal]

Look = Callable[[Proposal], Distribution]
"""The target's distributions at the root and every node of a proposal's first row."""


def draw_tree(
    draft: Conditional, parents: Sequence[int], chance: Chance, *, replacement: bool = True
) -> Proposal:
    """One tree of the given shape (see Proposal), every node drawn from `draft` after its parent.

    Without replacement siblings differ; where the draft has no token left, the node is not valid.
    """
    paths: list[Path | None] = []
    left: dict[int, Tensor] = {}
    for node, parent in enumerate(parents):
        above: Path | None = () if parent < 0 else paths[parent]
        q = None if above is None else left.setdefault(parent, draft(above).clone())
        if above is None or q is None or not float(q.sum()) > 0:
            paths.append(None)
            continue
        token = int(chance.sample(q.unsqueeze(0), _zero(), _zero(), Stream.DRAFT + node))
        paths.append((*above, token))
        if not replacement:
            q[token] = 0
    return _proposal(draft, parents, paths, replacement)


def _proposal(
    draft: Conditional, parents: Sequence[int], paths: Sequence[Path | None], replacement: bool
) -> Proposal:
    known = sorted({parent for parent, path in zip(parents, paths, strict=True) if path})
    q = torch.stack([draft(paths[p] or () if p >= 0 else ()) for p in known])
    used = [known.index(p) if path else 0 for p, path in zip(parents, paths, strict=True)]
    return Proposal(
        torch.tensor([[path[-1] if path else 0 for path in paths]]),
        torch.tensor([list(parents)]),
        torch.tensor([[path is not None for path in paths]]),
        q.unsqueeze(0),
        torch.tensor([used]),
        replacement=replacement,
    )


def paths_of(proposal: Proposal) -> list[Path]:
    """The tokens from the root to each node of the first row."""
    paths: list[Path] = []
    for token, parent in zip(
        proposal.tokens[0].tolist(), proposal.parents[0].tolist(), strict=True
    ):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
    return paths


def verify_once(
    verifier: Verifier,
    proposal: Proposal,
    target: Conditional,
    chance: Chance,
    look: Look | None = None,
) -> tuple[Path, Outcome]:
    """Run a verifier on the first row of a proposal -> the tokens it emits, and its outcome.

    `look` gives it the distributions of all nodes at once, as a decode loop would; None asks
    `target` path by path.
    """
    paths = paths_of(proposal)
    if look is None:
        probs = torch.stack([target(path) for path in [(), *paths]]).unsqueeze(0)
        distribution = Distribution(probs)
    else:
        distribution = look(proposal)
    outcome = verifier.verify(proposal, distribution, chance, _zero())
    accepted = int(outcome.accepted[0])
    last = int(outcome.path[0, accepted - 1]) if accepted else -1
    return (*(paths[last] if accepted else ()), int(outcome.bonus[0])), outcome


def emitted_distribution(
    verifier: Verifier,
    propose: Propose,
    target: Conditional,
    length: int,
    look: Look | None = None,
) -> Tensor:
    """Joint distribution [V, ..., V] of the first `length` tokens: those that one verification
    emits, continued by `target`; drafting and verifying enumerated, in float64."""
    joint = torch.zeros([target(()).shape[0]] * length, dtype=torch.float64)
    for weight, (tokens, _) in outcomes(
        lambda chance: verify_once(verifier, propose(chance), target, chance, look)
    ):
        _extend(joint, tokens[:length], weight, target)
    return joint


def plain_distribution(target: Conditional, length: int) -> Tensor:
    """Joint distribution [V, ..., V] of `length` tokens of plain decoding."""
    joint = torch.zeros([target(()).shape[0]] * length, dtype=torch.float64)
    _extend(joint, (), 1.0, target)
    return joint


def total_variation(a: Tensor, b: Tensor) -> float:
    """Half the sum of absolute differences."""
    return float((a - b).abs().sum() / 2)


def _extend(joint: Tensor, tokens: Path, weight: float, target: Conditional) -> None:
    if len(tokens) == joint.dim():
        joint[tokens] += weight
        return
    for token, p in enumerate(target(tokens).tolist()):
        if p > 0:
            _extend(joint, (*tokens, token), weight * p, target)


def _zero() -> Tensor:
    return torch.zeros(1, dtype=torch.long)
