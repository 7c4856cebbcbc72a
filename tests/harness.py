"""Tiny float64 models, engines over them, and transformers' own answers to compare with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import build, build_config, get
from draftmesh.registry.contracts.draft import Draft
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.stage import Checkpoint, DraftContext
from draftmesh.registry.contracts.verifier import Verifier
from draftmesh.stages.engine.native import NativeEngine
from draftmesh.stages.model.progress import quiet
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.model.tiny import Tiny
from draftmesh.stages.parallel.ranks import Solo

VOCAB = 96
SIZE: dict[str, Any] = {
    "vocab_size": VOCAB,
    "layers": 3,
    "hidden_size": 32,
    "heads": 4,
    "kv_heads": 2,
    "intermediate_size": 48,
    "experts": 4,
    "context": 128,
    "dtype": "float64",
}
PROMPTS: tuple[tuple[int, ...], ...] = (
    (5, 9, 9, 14, 5, 9),
    (31,),
    (7, 8, 7, 8, 7, 8, 7, 8, 7, 8, 7, 8),
    (60, 12, 33, 2, 90, 41, 17, 60, 12),
    (22, 3, 22),
)
"""Of different lengths, one of a single token, some that repeat themselves."""

SPECULATIVE = (
    "llama",
    "qwen2",
    "qwen3",
    "phi3",
    "mistral",
    "gemma2",
    "gemma3",
    "mixtral",
    "qwen3_moe",
    "olmoe",
    "deepseek_v3",
    "gpt_oss",
    "gpt2",
    "gpt_neox",
)
"""Architectures that can be used with a draft."""

Build = Callable[[DraftContext], Draft]


@dataclass(frozen=True)
class Setup:
    """A checkpoint and the target around it."""

    checkpoint: Checkpoint
    target: Any


@cache
def tiny(arch: str = "llama", wrapper: type = HFTarget, **options: Any) -> Setup:
    """A tiny float64 model, made once per test process."""
    checkpoint = Tiny(Tiny.Config(arch=arch, **{**SIZE, **options})).load()
    return Setup(checkpoint, wrapper(checkpoint.model))


def with_eos(setup: Setup, *ids: int) -> Setup:
    """The same model with other EOS ids (none at all without arguments)."""
    return replace(setup, checkpoint=replace(setup.checkpoint, eos_ids=ids))


def requests(
    prompts: Sequence[Sequence[int]] = PROMPTS,
    max_new_tokens: int = 12,
    seed: int = 0,
    stop: tuple[str, ...] = (),
) -> list[Request]:
    """One request per prompt."""
    return [
        Request(f"p{i}", "", tuple(ids), i, seed, max_new_tokens, stop)
        for i, ids in enumerate(prompts)
    ]


def run_engine(
    setup: Setup,
    asked: Sequence[Request],
    draft: Mapping[str, Any] | Build | None = None,
    verifier: str | Verifier = "match",
    sampling: Mapping[str, Any] | None = None,
    batch_size: int = 1,
    on_finish: Callable[[Completion], None] = lambda completion: None,
) -> Generation:
    """Complete requests with the native engine; a draft is its options, or makes itself."""
    target, checkpoint = setup.target, setup.checkpoint
    vocab = target.vocab_size
    words = vocab if checkpoint.tokenizer is None else min(len(checkpoint.tokenizer), vocab)
    sampler = build("sampling", {"name": "processors", **(sampling or {})}, vocab, words)
    ranks = Solo()
    coupled = verifier == "match"
    context = DraftContext(target, checkpoint, sampler, ranks, coupled)
    made = draft(context) if callable(draft) else _draft(draft or {"name": "none"}, context)
    judge = build("verifier", {"name": verifier}) if isinstance(verifier, str) else verifier
    engine = NativeEngine(NativeEngine.Config(), checkpoint, target, made, judge, sampler, ranks)
    return engine.generate(asked, batch_size, on_finish)


def save_draft(folder: Path, noise: float = 0.0, arch: str = "llama", **options: Any) -> str:
    """A draft model's folder: a model as `tiny(arch, **options)` would be, with noise of this
    deviation on its LM head."""
    checkpoint = Tiny(Tiny.Config(arch=arch, **{**SIZE, **options})).load()
    head = checkpoint.model.get_output_embeddings().weight
    generator = torch.Generator().manual_seed(5)
    head += noise * torch.randn(head.shape, generator=generator, dtype=head.dtype)
    with quiet():
        checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return str(folder)


def _draft(node: Mapping[str, Any], context: DraftContext) -> Draft:
    cls = get("draft", node["name"])
    draft: Draft = cls(build_config(cls, node), context)
    return draft


def tokens(generation: Generation) -> list[list[int]]:
    """The completions' token ids."""
    return [completion.token_ids for completion in generation.completions]


@contextmanager
def own_attention(model: Any) -> Iterator[None]:
    """The model as transformers runs it."""
    ours = model.config._attn_implementation
    if model._supports_attention_backend:
        model.set_attn_implementation("sdpa" if model._supports_sdpa else "eager")
    try:
        yield
    finally:
        if model._supports_attention_backend:
            model.set_attn_implementation(ours)


@torch.inference_mode()
def rerun(model: Any, ids: Sequence[int] | Tensor) -> Tensor:
    """Logits [L, V] of a whole sequence, by transformers alone and without a cache."""
    with own_attention(model):
        logits: Tensor = model(torch.as_tensor(ids)[None], use_cache=False).logits[0]
    return logits


@torch.inference_mode()
def rerun_last(model: Any, lines: Sequence[Sequence[int]]) -> Tensor:
    """Logits [R, V] after each of some sequences, as `rerun` (padded behind, in one forward)."""
    width = max(map(len, lines))
    padded = torch.tensor([[*line, *[1] * (width - len(line))] for line in lines])
    with own_attention(model):
        logits: Tensor = model(padded, use_cache=False).logits
    return logits[torch.arange(len(lines)), torch.tensor([len(line) - 1 for line in lines])]


@torch.inference_mode()
def generate(setup: Setup, prompt: Sequence[int], new_tokens: int) -> list[int]:
    """What transformers' own greedy `generate` appends to a prompt."""
    model, eos = setup.checkpoint.model, setup.checkpoint.eos_ids
    with own_attention(model):
        out = model.generate(
            torch.tensor([list(prompt)]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            do_sample=False,
            max_new_tokens=new_tokens,
            eos_token_id=list(eos) or None,
            pad_token_id=0,
        )
    found: list[int] = out[0, len(prompt) :].tolist()
    return found
