"""Random-weight models of many architectures, for tests and for trying things out."""

from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from draftmesh.registry import register
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.stages.model.architectures import ARCHITECTURES, Size, tiny_config
from draftmesh.stages.model.bytetokenizer import byte_tokenizer
from draftmesh.stages.model.device import resolve_device
from draftmesh.stages.model.dtype import resolve_dtype
from draftmesh.stages.model.explain import explained
from draftmesh.stages.model.loading import implementations, ready
from draftmesh.stages.model.options import LoadOptions, one_of
from draftmesh.stages.model.progress import quiet
from draftmesh.stages.model.randomweights import randomise


@register("model", "tiny")
class Tiny:
    """A tiny model with random weights and a byte-level tokenizer (model.arch)."""

    @dataclass(frozen=True)
    class Config:
        """Equal configs give equal weights. `extra` overrides keys of the transformers config.

        `sliding_window` counts for architectures that have one. `std` is the deviation of the
        weights (see `randomise`).
        """

        name: str = "tiny"
        arch: str = "llama"
        vocab_size: int = 264
        layers: int = 4
        hidden_size: int = 64
        heads: int = 4
        kv_heads: int = 2
        intermediate_size: int = 128
        experts: int = 8
        experts_per_token: int = 2
        context: int = 512
        sliding_window: int = 8
        std: float = 0.2
        seed: int = 0
        dtype: str = "float32"
        device: str = "auto"
        attention: str = "auto"
        extra: dict[str, Any] = field(default_factory=dict)

    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Checkpoint:
        """Make the model. Raises UserError for sizes that its architecture cannot have."""
        config = self.config
        one_of("model.arch", config.arch, tuple(ARCHITECTURES))
        LoadOptions(attention=config.attention).check()
        device = resolve_device(config.device)
        dtype = resolve_dtype(config.dtype, device)
        tokenizer = byte_tokenizer(config.vocab_size)
        with quiet():
            model = self._model(dtype)
        return ready(f"tiny_{config.arch}", None, model.to(device), tokenizer)

    def _model(self, dtype: torch.dtype) -> Any:
        config = self.config
        with explained(f"model.arch={config.arch} of this size"), torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)  # for initial values that `randomise` keeps
            architecture = tiny_config(config.arch, self._size(), config.extra)
            mapping: Any = AutoModelForCausalLM._model_mapping
            chosen = implementations(config.attention, mapping[type(architecture)], dtype)
            model = AutoModelForCausalLM.from_config(architecture, dtype=dtype, **chosen)
        randomise(model, config.seed, config.std)
        return model

    def _size(self) -> Size:
        config = self.config
        return Size(
            vocab_size=config.vocab_size,
            layers=config.layers,
            hidden_size=config.hidden_size,
            heads=config.heads,
            kv_heads=config.kv_heads,
            intermediate_size=config.intermediate_size,
            experts=config.experts,
            experts_per_token=config.experts_per_token,
            context=config.context,
            window=config.sliding_window,
        )
