"""What has been committed so far, for processors that look back from a draft's tokens."""

import torch
from torch import Tensor

from draftmesh.registry.contracts.draft import Rows, Step
from draftmesh.registry.contracts.sampling import History


class Prefixes:
    """The committed tokens of each row, up to and with the root; kept only if `needed`."""

    def __init__(self, rows: Rows, needed: bool) -> None:
        self.needed = needed
        self._lines: list[list[int]] = [[] for _ in rows.requests]
        self._prompts = torch.tensor([len(r.token_ids) for r in rows.requests])

    @property
    def rows(self) -> int:
        """B."""
        return len(self._lines)

    def observe(self, step: Step) -> None:
        """Add what a step has committed, and the token chosen after it."""
        if not self.needed:
            return
        counts, following = step.lengths.tolist(), step.next.tolist()
        for line, tokens, count, bonus in zip(
            self._lines, step.tokens.tolist(), counts, following, strict=True
        ):
            # After the prompt, a step's first token is the root, known since it was chosen.
            line.extend([*(tokens[1:count] if line else tokens[:count]), bonus])

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self._lines = [self._lines[row] for row in keep.tolist()]
        self._prompts = self._prompts[keep.to(self._prompts.device)]

    def history(self, nodes: Tensor, parents: Tensor) -> History | None:
        """The prefixes and the draft's nodes [B, N] after them; None if nobody looks back."""
        if not self.needed:
            return None
        device = nodes.device
        lengths = torch.tensor([len(line) for line in self._lines], device=device)
        width = int(lengths.max())
        padded = [line + [0] * (width - len(line)) for line in self._lines]
        tokens = torch.tensor(padded, device=device)
        return History(tokens, lengths, nodes, parents, self._prompts.to(device))
