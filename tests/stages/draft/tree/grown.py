"""Trees grown over small vocabularies from a known conditional distribution."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.draft import Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.draft.tree.picker import TreePicker
from draftmesh.stages.draft.tree.shape import TreeShape
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors

Conditional = Callable[[tuple[int, ...]], Tensor]


def context(vocab: int, coupled: bool = False, **sampling: Any) -> DraftContext:
    sampler = Processors(SamplingOptions(**sampling), vocab)
    return DraftContext(None, None, sampler, Solo(), coupled)  # type: ignore[arg-type]


def grow(
    draft: Conditional,
    chance: Chance,
    options: TreeOptions,
    draft_context: DraftContext,
    budgets: tuple[int, ...] = (99,),
    prompt: tuple[int, ...] = (0, 1),
    whole: bool = False,
) -> Proposal:
    """One tree per row, from logits log draft(path); positions start at 0."""
    rows = len(budgets)
    requests = tuple(SimpleNamespace(token_ids=prompt[:-1]) for _ in range(rows))
    picker = TreePicker(
        draft_context,
        Rows(requests, chance, 0, None),  # type: ignore[arg-type]
        options,
        whole,
    )
    committed = torch.tensor([prompt[:-1]] * rows)
    picker.observe(
        Step(
            committed,
            torch.full((rows,), len(prompt) - 1),
            committed,
            {},
            torch.full((rows,), prompt[-1]),
        )
    )
    shape = TreeShape.of(options).cut(max(budgets))
    picker.begin(torch.zeros(rows, dtype=torch.long), torch.tensor(budgets), shape)
    frontier = picker.grow(draft(()).log().expand(rows, 1, -1))
    run: list[list[tuple[int, ...]]] = [[] for _ in range(rows)]
    while frontier is not None:
        for row, paths in enumerate(run):
            parents = frontier.parents[row, frontier.offset :].tolist()
            for token, parent in zip(frontier.tokens[row].tolist(), parents, strict=True):
                paths.append((*(paths[parent] if parent >= 0 else ()), token))
        if len(frontier.expand) == 0:
            break
        wanted = (frontier.offset + frontier.expand).tolist()
        logits = torch.stack(
            [torch.stack([draft(paths[i]).log() for i in wanted]) for paths in run]
        )
        frontier = picker.grow(logits)
    return picker.proposal()


def paths_of(proposal: Proposal, row: int = 0) -> list[tuple[int, ...] | None]:
    """The tokens from the root to each node of a row; None for one that is not valid."""
    paths: list[tuple[int, ...] | None] = []
    for token, parent, valid in zip(
        proposal.tokens[row].tolist(),
        proposal.parents[row].tolist(),
        proposal.valid[row].tolist(),
        strict=True,
    ):
        above = paths[parent] if parent >= 0 else ()
        assert not (valid and above is None), "a valid node hangs below one that is not"
        paths.append((*above, token) if valid and above is not None else None)
    return paths


def random_draft(vocab: int, seed: int, zeros: float = 0.0) -> Conditional:
    """Random conditionals, with impossible tokens."""
    known: dict[tuple[int, ...], Tensor] = {}

    def after(path: tuple[int, ...]) -> Tensor:
        if path not in known:
            generator = torch.Generator().manual_seed(hash((seed, vocab, *path)) % 2**31)
            p = torch.rand(vocab, generator=generator, dtype=torch.float64) ** 3
            p[torch.rand(vocab, generator=generator) < zeros] = 0
            p[int(torch.randint(vocab, (1,), generator=generator))] += 0.1
            known[path] = p / p.sum()
        return known[path]

    return after
