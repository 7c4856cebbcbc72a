"""Finding the parts of a Hugging Face decoder, and running only some of its layers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from draftmesh.registry import UserError

LAYER_NAMES = ("layers", "h", "blocks")
NORM_NAMES = ("norm", "final_layernorm", "final_layer_norm", "ln_f", "final_norm")


class Skip(nn.Module):
    """Stands in for a layer that does not run."""

    def forward(self, hidden: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Hidden states unchanged."""
        return hidden


@dataclass(frozen=True)
class Parts:
    """The decoder of a causal LM and the names of its layer list and final norm."""

    decoder: nn.Module
    layers: str
    norm: str

    @staticmethod
    def of(model: Any) -> "Parts":
        """Find them; a model of another shape is refused."""
        decoder = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
        layers = [n for n in LAYER_NAMES if isinstance(getattr(decoder, n, None), nn.ModuleList)]
        norms = [n for n in NORM_NAMES if isinstance(getattr(decoder, n, None), nn.Module)]
        if not layers or not norms or model.get_output_embeddings() is None:
            raise UserError(
                f"{type(model).__name__} is not a decoder-only causal LM that draftmesh can drive: "
                "choose another model (model.path)"
            )
        return Parts(decoder, layers[0], norms[0])

    @property
    def layer_list(self) -> nn.ModuleList:
        """The decoder layers."""
        layers = self.decoder._modules[self.layers]
        assert isinstance(layers, nn.ModuleList)
        return layers

    @property
    def norm_module(self) -> nn.Module:
        """The final norm."""
        norm = self.decoder._modules[self.norm]
        assert norm is not None
        return norm


class LayerSubset:
    """Runs a decoder with some of its layers replaced by `Skip`, so that indices, layer types and
    position embeddings stay the model's own."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.full = parts.layer_list
        self.norm = parts.norm_module
        self._views: dict[tuple[int, ...], nn.ModuleList] = {}

    @contextmanager
    def only(self, layers: Sequence[int]) -> Iterator[None]:
        """Run only these layers; the final norm runs only if the last layer does."""
        chosen = tuple(layers)
        if chosen not in self._views:
            keep = set(chosen)
            self._views[chosen] = nn.ModuleList(
                layer if i in keep else Skip() for i, layer in enumerate(self.full)
            )
        modules = self.parts.decoder._modules
        modules[self.parts.layers] = self._views[chosen]
        if not chosen or chosen[-1] != len(self.full) - 1:
            modules[self.parts.norm] = Skip()
        try:
            yield
        finally:
            modules[self.parts.layers] = self.full
            modules[self.parts.norm] = self.norm
