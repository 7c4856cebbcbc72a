"""A small target for Medusa's heads."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from draftmesh.registry.contracts.stage import Checkpoint, DraftContext
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors

VOCAB, HIDDEN, LAYERS = 96, 32, 3


def make_target(seed: int = 1, hidden: int = HIDDEN, **options: object) -> HFTarget:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=hidden,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.3,
        attn_implementation="eager",
        **options,
    )
    return HFTarget(LlamaForCausalLM(config).double().eval().requires_grad_(False))


def context_of(target: HFTarget, **sampling: float) -> DraftContext:
    checkpoint = Checkpoint("tiny", None, target.model, None, (0,))
    sampler = Processors(SamplingOptions(**sampling), VOCAB)  # type: ignore[arg-type]
    return DraftContext(target, checkpoint, sampler, Solo())
