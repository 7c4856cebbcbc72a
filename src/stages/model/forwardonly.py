"""Models whose layers cannot take tokens back: plain decoding with transformers' own cache."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from draftmesh.registry import UserError
from draftmesh.registry.contracts.target import Forward
from draftmesh.stages.model.context import context_of


class ForwardOnlyCache:
    """One transformers cache per sequence (contract: Cache, without taking anything back).

    A forward's tokens enter the model's state at once, so all of them must be committed.
    """

    def __init__(self, rows: int, capacity: int, device: torch.device) -> None:
        self.capacity = capacity
        self.lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self.states: list[Any] = [None] * rows
        self.fed = [0] * rows

    def advance(self, counts: Tensor) -> None:
        """Commit the tokens of the last forward: counts [B] are how many each row was given."""
        assert counts.tolist() == self.fed, "tokens that went through these layers stay"
        self.lengths = self.lengths + counts.to(self.lengths.device)
        self.fed = [0] * len(self.fed)

    def keep(self, path: Tensor, counts: Tensor) -> None:
        """As `advance`; path [B, D] can only be the whole chain."""
        self.advance(counts)

    def select(self, rows: Tensor) -> None:
        """Keep only rows [B'], in that order."""
        chosen = rows.tolist()
        self.lengths = self.lengths[rows.to(self.lengths.device)]
        self.states = [self.states[row] for row in chosen]
        self.fed = [self.fed[row] for row in chosen]


class ForwardOnlyTarget:
    """A causal LM run by transformers alone, row by row (contract: Target, plain decoding only).

    Recurrent layers (linear attention, Mamba) keep one state instead of a key per token, so a
    rejected draft could not be rolled back; other models compute attention where tree masks can't
    reach. Rows are run one at a time because such states can't be padded.
    """

    speculative = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = model.config.get_text_config()
        self.num_layers: int = self.config.num_hidden_layers
        self.hidden_size: int = self.config.hidden_size
        self.vocab_size: int = self.config.vocab_size
        self.context = context_of(self.config)
        self.dtype: torch.dtype = model.dtype
        self.device: torch.device = model.device
        self.before_forward: list[Callable[[Tensor | None], None]] = []

    def new_cache(self, rows: int, capacity: int) -> ForwardOnlyCache:
        """An empty cache for `rows` sequences."""
        return ForwardOnlyCache(rows, capacity, self.device)

    def embed(self, tokens: Tensor) -> Tensor:
        """Token embeddings [..., H]."""
        embedding: nn.Module = self.model.get_input_embeddings()
        out: Tensor = embedding(tokens.to(self.device))
        return out

    def norm(self, hidden: Tensor) -> Tensor:
        """Refused: no part of such a model is run by itself."""
        raise self._refusal()

    def lm_head(self, hidden: Tensor) -> Tensor:
        """Refused: no part of such a model is run by itself."""
        raise self._refusal()

    def forward(
        self,
        inputs: Tensor,
        cache: ForwardOnlyCache,
        *,
        parents: Tensor | None = None,
        valid: Tensor | None = None,
        offset: int = 0,
        layers: Sequence[int] | None = None,
        capture: Sequence[int] = (),
        logits_at: Tensor | None = None,
    ) -> Forward:
        """See the Target contract; hidden states are not handed out (H = 0).

        Raises UserError for what only speculation needs: several tokens behind a prompt, trees,
        offsets, some layers, features.
        """
        if parents is not None or offset or layers is not None or capture or inputs.dim() != 2:
            raise self._refusal()
        rows, size = inputs.shape
        if size > 1 and any(state is not None for state in cache.states):
            raise self._refusal()
        counts = [size] * rows if valid is None else valid.sum(1).tolist()
        logits = torch.zeros(rows, size, self.vocab_size, dtype=self.dtype, device=self.device)
        for row, count in enumerate(counts):
            if count:
                logits[row, :count] = self._run(inputs[row : row + 1, :count], cache, row)
        cache.fed = counts
        if logits_at is not None:
            at = logits_at.to(self.device)
            logits = logits[torch.arange(rows, device=self.device)[:, None], at]
        return Forward(logits, logits.new_empty(rows, size, 0), {})

    def _run(self, tokens: Tensor, cache: ForwardOnlyCache, row: int) -> Tensor:
        for prepare in self.before_forward:
            prepare(None)
        known = {} if cache.states[row] is None else {"cache": cache.states[row]}
        output = self.model(tokens.to(self.device), use_cache=True, **known)
        cache.states[row] = getattr(output, "cache", None)
        if cache.states[row] is None:
            raise UserError(
                f"{type(self.model).__name__} keeps no cache that transformers hands back: "
                "choose another model (model.path)"
            )
        logits: Tensor = output.logits[0]
        return logits

    def _refusal(self) -> UserError:
        return UserError(f"{type(self.model).__name__} can only decode plainly: use draft=none")
