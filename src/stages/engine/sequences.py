"""The growing sequences of a batch: what was emitted, when each one ends."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.sampling import History
from draftmesh.stages.engine.stopping import Stopper

Finished = Callable[[Completion], None]


class Sequences:
    """Completions of the rows still running, in batch order."""

    def __init__(
        self, requests: Sequence[Request], tokenizer: Any, eos_ids: Sequence[int], context: int
    ) -> None:
        self.completions = [Completion(request) for request in requests]
        self.limits = [min(r.max_new_tokens, context - len(r.token_ids)) for r in requests]
        self.stoppers = [Stopper(tokenizer, eos_ids, r.stop) for r in requests]

    def __len__(self) -> int:
        return len(self.completions)

    @property
    def lengths(self) -> list[int]:
        """Tokens per row, prompt included."""
        return [len(c.request.token_ids) + len(c.token_ids) for c in self.completions]

    def remaining(self) -> Tensor:
        """[B] int64: how many tokens each row may still emit."""
        left = [
            limit - len(c.token_ids) for limit, c in zip(self.limits, self.completions, strict=True)
        ]
        return torch.tensor(left)

    def append(self, row: int, tokens: list[int]) -> bool:
        """Emit a step's tokens (all but the last were drafted); True if the row has ended."""
        completion = self.completions[row]
        emitted, ended = 0, False
        for index, token in enumerate(tokens):
            completion.token_ids.append(token)
            completion.drafted.append(index < len(tokens) - 1)
            emitted += 1
            reason = self.stoppers[row].check(completion.token_ids)
            if reason is not None:
                completion.finish_reason, ended = reason, True
                break
            if len(completion.token_ids) >= self.limits[row]:
                ended = True
                break
        completion.accept_lengths.append(emitted)
        if ended:
            completion.text = self.stoppers[row].text(completion.token_ids)
        return ended

    def select(self, keep: list[int]) -> None:
        """Keep only these rows."""
        self.completions = [self.completions[i] for i in keep]
        self.limits = [self.limits[i] for i in keep]
        self.stoppers = [self.stoppers[i] for i in keep]

    def history(self, node_tokens: Tensor, parents: Tensor) -> History:
        """The prefixes (the last token is the root) and the nodes after them."""
        rows = [[*c.request.token_ids, *c.token_ids] for c in self.completions]
        lengths = torch.tensor([len(row) for row in rows])
        width = int(lengths.max())
        tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        device = node_tokens.device
        prompts = torch.tensor([len(c.request.token_ids) for c in self.completions])
        return History(
            tokens.to(device), lengths.to(device), node_tokens, parents, prompts.to(device)
        )
