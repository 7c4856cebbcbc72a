import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from draftmesh.registry.contracts.stage import Checkpoint, DraftContext
from draftmesh.stages.draft.eagle.config import HeadConfig, default_capture
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors

sys.path.insert(0, str(Path(__file__).parent))

VOCAB, HIDDEN, LAYERS = 96, 32, 6


@pytest.fixture(scope="session")
def target() -> HFTarget:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.3,
        attn_implementation="eager",
    )
    return HFTarget(LlamaForCausalLM(config).double().eval().requires_grad_(False))


@pytest.fixture(scope="session")
def make_head() -> Callable[..., Head]:
    def make(version: int = 3, **changes: object) -> Head:
        torch.manual_seed(2)
        shape = {
            "version": version,
            "hidden": HIDDEN,
            "target_hidden": HIDDEN,
            "intermediate": 40,
            "heads": 4,
            "kv_heads": 2,
            "head_dim": 8,
            "vocab": VOCAB,
            "draft_vocab": 60 if version == 3 else VOCAB,
            "capture": default_capture(version, LAYERS),
            "max_position": 128,
        }
        head = Head(HeadConfig(**(shape | changes)))  # type: ignore[arg-type]
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
        if version == 3:
            ids = torch.arange(0, VOCAB)[torch.randperm(VOCAB)[:60]].sort().values
            if head.config.reduced:
                head.d2t.copy_(ids - torch.arange(60))
                head.t2d.zero_()[ids] = True
        return head.double().eval().requires_grad_(False)

    return make


@pytest.fixture
def context(target: HFTarget) -> DraftContext:
    checkpoint = Checkpoint("tiny", None, target.model, None, (0,))
    sampler = Processors(SamplingOptions(), VOCAB)
    return DraftContext(target, checkpoint, sampler, Solo())


@pytest.fixture
def sampling_context(target: HFTarget) -> DraftContext:
    checkpoint = Checkpoint("tiny", None, target.model, None, (0,))
    sampler = Processors(SamplingOptions(temperature=1.0), VOCAB)
    return DraftContext(target, checkpoint, sampler, Solo())
