"""The EAGLE head: versions 1 (also used by EAGLE-2) and 3."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from draftmesh.stages.draft.eagle.config import HeadConfig
from draftmesh.stages.draft.eagle.layer import Layer, Norm
from draftmesh.stages.draft.eagle.rotary import Rotary

Rotation = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Entry:
    """What enters the layer: the attention's input [B, T, W] and the residual [B, T, H]."""

    attend: Tensor
    residual: Tensor

    def at(self, span: slice) -> "Entry":
        """The same for some of the T positions."""
        return Entry(self.attend[:, span], self.residual[:, span])


class Head(nn.Module):
    """One decoder layer over (embedding of token i+1, hidden state of token i) -> state of i+1.

    The embedding, and the LM head of version 1, are the target's unless the head has its own.
    """

    d2t: Tensor
    t2d: Tensor

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        layers = len(config.capture)
        sources = 2 * config.hidden if config.version == 1 else layers * config.target_hidden
        self.fc = nn.Linear(sources, config.hidden, bias=config.fc_bias)
        self.midlayer = Layer(config)
        self.rotary = Rotary(config)
        if config.fc_norm:
            norms = (Norm(config.target_hidden, config.eps) for _ in range(layers))
            self.fc_norm = nn.ModuleList(norms)
        if config.input_norm:
            self.input_norm = Norm(sources, config.eps)
        if config.own_embedding:
            self.embed_tokens = nn.Embedding(config.vocab, config.hidden)
        if config.version == 3:
            self.norm = Norm(config.hidden, config.eps)
        if config.version == 3 or config.own_lm_head:
            self.lm_head = nn.Linear(config.hidden, config.draft_vocab, bias=False)
        if config.version == 3:
            self.register_buffer("d2t", torch.zeros(config.draft_vocab, dtype=torch.long))
            self.register_buffer("t2d", torch.ones(config.vocab, dtype=torch.bool))

    @property
    def like(self) -> Tensor:
        """A tensor of the head's dtype, on its device."""
        return self.midlayer.post_attention_layernorm.weight

    @cached_property
    def target_ids(self) -> Tensor:
        """The target's ids [Vd] of the draft vocabulary (d2t holds offsets)."""
        return self.d2t + torch.arange(len(self.d2t), device=self.d2t.device)

    def fuse(self, features: Tensor) -> Tensor:
        """The target's captured layers side by side [B, T, C*H] -> hidden states g [B, T, H]."""
        if self.config.version == 1:
            return features
        if self.config.fc_norm:
            layers = features.chunk(len(self.fc_norm), -1)
            normed = [norm(x) for norm, x in zip(self.fc_norm, layers, strict=True)]
            features = torch.cat(normed, -1)
        if self.config.input_norm:
            features = self.input_norm(features)
        fused: Tensor = self.fc(features)
        return fused

    def enter(self, embedding: Tensor, hidden: Tensor) -> Entry:
        """Embeddings of the next tokens [B, T, H] and hidden states g [B, T, H] -> layer input."""
        if self.config.version == 1:
            x = self.fc(torch.cat((embedding, hidden), -1))
            return Entry(x, x)
        normed = self.midlayer.hidden_norm(hidden)
        wide = torch.cat((self.midlayer.input_layernorm(embedding), normed), -1)
        return Entry(wide, normed if self.config.residual_normed else hidden)

    def rotation(self, positions: Tensor, dtype: torch.dtype) -> Rotation:
        """Cosines and sines for positions [B, T]; the pair of token i sits at position i."""
        return self.rotary(positions, dtype)

    def feedback(self, output: Tensor) -> Tensor:
        """What the next step gets in place of g, from the layer's output [B, T, H]."""
        return self.norm(output) if self.config.feed_normed else output

    def normed(self, output: Tensor) -> Tensor:
        """The layer's output [B, T, H], ready for the LM head."""
        normed = self.config.version == 3 and self.config.head_normed
        return self.norm(output) if normed else output
