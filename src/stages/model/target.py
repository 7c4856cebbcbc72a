"""The target: a Hugging Face causal LM behind the Target contract."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from draftmesh.registry.contracts.target import Forward
from draftmesh.stages.model import attention
from draftmesh.stages.model.cache import SlotCache
from draftmesh.stages.model.context import context_of
from draftmesh.stages.model.layers import LayerSubset, Parts
from draftmesh.stages.model.logits import scaled
from draftmesh.stages.model.masks import Masks, ancestors


class HFTarget:
    """Wraps a decoder-only Hugging Face causal LM without copying its modelling code.

    Key/values live in a SlotCache, masks reach the attention layers as a keyword, layers are run in
    part by standing in for the others, and hidden states are captured by hooks. `windows` are the
    sliding windows (None is full attention) that the layers of the last forward asked for.
    """

    speculative = True

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = model.config.get_text_config()
        self.parts = Parts.of(model)
        self.subset = LayerSubset(self.parts)
        self.num_layers = len(self.parts.layer_list)
        self.hidden_size: int = self.config.hidden_size
        self.vocab_size: int = self.config.vocab_size
        self.context = context_of(self.config)
        self.dtype: torch.dtype = model.dtype
        self.device: torch.device = model.device
        self.all_layers = tuple(range(self.num_layers))
        self._embedding: nn.Module = model.get_input_embeddings()
        self._head: nn.Module = model.get_output_embeddings()
        self._captured: dict[int, Tensor] = {}
        self._tapped: set[int] = set()
        self.windows: set[int | None] = set()
        self.before_forward: list[Any] = []
        if self.config._attn_implementation == "eager":
            model.set_attn_implementation(attention.NAME)

    def new_cache(self, rows: int, capacity: int) -> SlotCache:
        """An empty cache for `rows` sequences of at most `capacity` tokens, drafts included."""
        return SlotCache(rows, capacity, self.device)

    def embed(self, tokens: Tensor) -> Tensor:
        """Token embeddings [..., H] (without position embeddings, where a model adds those)."""
        out: Tensor = self._embedding(tokens.to(self.device))
        return out

    def norm(self, hidden: Tensor) -> Tensor:
        """The final norm."""
        out: Tensor = self.subset.norm(hidden)
        return out

    def lm_head(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of final-normed hidden states."""
        return scaled(self._head(hidden).to(self.device), self.config)

    def forward(
        self,
        inputs: Tensor,
        cache: SlotCache,
        *,
        parents: Tensor | None = None,
        valid: Tensor | None = None,
        offset: int = 0,
        layers: Sequence[int] | None = None,
        capture: Sequence[int] = (),
        logits_at: Tensor | None = None,
    ) -> Forward:
        """See the Target contract."""
        size = inputs.shape[1]
        chosen = self.all_layers if layers is None else tuple(layers)
        masks, positions = self._layout(cache, size, parents, offset)
        for prepare in self.before_forward:
            prepare(valid)
        self._tap(capture)
        self._captured.clear()
        key = "input_ids" if inputs.dim() == 2 else "inputs_embeds"
        arguments: dict[str, Any] = {key: inputs.to(self.device), "position_ids": positions}
        if len(chosen) == self.num_layers:
            hidden = self._run(arguments, cache, masks)
        else:
            with self.subset.only(chosen):
                hidden = self._run(arguments, cache, masks)
        features = {layer: self._captured[layer].to(self.device) for layer in capture}
        if not chosen or chosen[-1] != self.num_layers - 1:
            return Forward(None, hidden, features)
        wanted = hidden
        if logits_at is not None:
            index = logits_at.to(hidden.device)[..., None].expand(-1, -1, hidden.shape[-1])
            wanted = hidden.gather(1, index)
        return Forward(self.lm_head(wanted), hidden, features)

    def _run(self, arguments: dict[str, Any], cache: SlotCache, masks: Masks) -> Tensor:
        output = self.parts.decoder(**arguments, cache=cache, use_cache=True, masks=masks)
        hidden: Tensor = output[0].to(self.device)
        self.windows = masks.windows
        return hidden

    def _layout(
        self, cache: SlotCache, size: int, parents: Tensor | None, offset: int
    ) -> tuple[Masks, Tensor]:
        columns = cache.place(size, offset)
        nodes = offset + size
        if parents is None:
            depth = torch.arange(nodes, device=self.device)[None]
            related = depth[:, offset:, None] >= depth[:, None]
            fresh = columns == size
            plain = cache.uniform and (size == 1 or fresh)
        else:
            assert parents.shape[1] == nodes, "parents describe every uncommitted token"
            whole = ancestors(parents.to(self.device))
            depth, related = whole.sum(-1) - 1, whole[:, offset:]
            plain = False
        rows = cache.rows
        masks = Masks(
            cache.lengths,
            depth.expand(rows, -1),
            related.expand(rows, -1, -1),
            columns,
            plain,
            cache.uniform,
        )
        positions = cache.lengths[:, None] + depth[:, offset:]
        # Padding behind a row's last token may lie past the model's context.
        return masks, positions.clamp(max=self.context - 1)

    def _tap(self, capture: Sequence[int]) -> None:
        for layer in capture:
            if layer in self._tapped:
                continue
            self._tapped.add(layer)
            if layer == self.num_layers:
                self.subset.norm.register_forward_hook(self._keep_output)
            else:
                self.subset.full[layer].register_forward_pre_hook(
                    lambda _, args, kwargs, at=layer: self._keep_input(at, args, kwargs),
                    with_kwargs=True,
                )

    def _keep_output(self, _: nn.Module, args: Any, output: Tensor) -> None:
        self._captured[self.num_layers] = output

    def _keep_input(self, layer: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._captured[layer] = args[0] if args else kwargs["hidden_states"]
