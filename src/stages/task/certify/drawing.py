"""A proposal of a given shape, drawn in a small world."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance, Stream
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.stages.task.certify.shape import Shape
from draftmesh.stages.task.certify.smallworld import SmallWorld
from draftmesh.stages.verifier.exactness import Path


def draw(world: SmallWorld, shape: Shape, chance: Chance) -> Proposal:
    """Drawn nodes by chance, given ones the draft's likeliest tokens.

    Where a draft without replacement has no token left for a node, it and those below are invalid.
    """
    if not shape.parents:
        return Proposal.empty(1, torch.device("cpu"))
    paths: list[Path | None] = []
    left: dict[int, Tensor] = {}
    for node, parent in enumerate(shape.parents):
        above = () if parent < 0 else paths[parent]
        if above is None:
            paths.append(None)
            continue
        q = left.setdefault(parent, world.draft(above).clone())
        token = _token(world, shape, chance, node, above, q)
        paths.append(None if token is None else (*above, token))
        if token is not None and shape.drawn[node] and not shape.replacement:
            q[token] = 0
    return _proposal(world, shape, paths)


def _token(
    world: SmallWorld, shape: Shape, chance: Chance, node: int, above: Path, q: Tensor
) -> int | None:
    if not shape.drawn[node]:
        earlier = sum(parent == shape.parents[node] for parent in shape.parents[:node])
        return int(world.draft(above).argsort(descending=True, stable=True)[earlier])
    if not float(q.sum()) > 0:
        return None
    here = torch.zeros(1, dtype=torch.long)
    return int(chance.sample(q.unsqueeze(0), here, here, Stream.DRAFT + node))


def _proposal(world: SmallWorld, shape: Shape, paths: list[Path | None]) -> Proposal:
    q, index = None, None
    if any(shape.drawn):
        above = {p: () if p < 0 else paths[p] for p in dict.fromkeys(shape.parents)}
        known = {p: path for p, path in above.items() if path is not None}
        q = torch.stack([world.draft(path) for path in known.values()]).unsqueeze(0)
        place = {p: i for i, p in enumerate(known)}
        used = [
            place.get(p, -1) if drawn else -1
            for p, drawn in zip(shape.parents, shape.drawn, strict=True)
        ]
        index = torch.tensor([used])
    return Proposal(
        torch.tensor([[path[-1] if path else 0 for path in paths]]),
        torch.tensor([list(shape.parents)]),
        torch.tensor([[path is not None for path in paths]]),
        q,
        index,
        replacement=shape.replacement,
        fixed_shape=shape.fixed_shape,
    )
