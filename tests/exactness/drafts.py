"""The drafts of the exactness tests, made so that all of them are right now and then."""

from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
from factors import SHAPES, Case
from harness import VOCAB, Build, Setup, save_draft, tiny, with_eos

from draftmesh.registry import build_config, get
from draftmesh.registry.contracts.draft import Draft
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.adaptive.draft import AdaptiveDraft
from draftmesh.stages.draft.eagle.config import HeadConfig
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.safeai import save_head
from draftmesh.stages.draft.medusa.heads import MedusaHeads
from draftmesh.stages.draft.medusa.layouts import save_medusa
from draftmesh.stages.model.forwardonly import ForwardOnlyTarget
from draftmesh.stages.model.target import HFTarget

NODES: dict[str, dict[str, Any]] = {
    "none": {"name": "none"},
    "ngram": {"name": "ngram", "min_match": 1},
    "exit": {"name": "self", "exit_layer": 2},
    "skip": {"name": "self", "skip_layers": [1]},
    "small": {"name": "small"},
    "eagle1": {"name": "eagle", "confidence": 0.5},
    "eagle3": {"name": "eagle"},
    "medusa": {"name": "medusa", "shape": "chain"},
    "cascade": {
        "name": "cascade",
        "first": {"name": "ngram", "k": 2, "min_match": 2},
        "second": {"name": "self", "exit_layer": 2},
    },
    "adaptive": {"name": "self", "exit_layer": 2},
}


@dataclass(frozen=True)
class Size:
    """A vocabulary, and how sure models are of their next token (deviation of their weights)."""

    vocab_size: int = VOCAB
    std: float = 0.2

    @property
    def options(self) -> dict[str, Any]:
        """As options of a tiny model."""
        return vars(self)


USUAL = Size()


def setup_of(arch: str, size: Size = USUAL) -> Setup:
    """A model of this architecture that never ends by itself."""
    wrapper = ForwardOnlyTarget if arch == "mamba" else HFTarget
    return with_eos(tiny(arch, wrapper, **size.options))


def builder(case: Case, size: Size = USUAL, shape: dict[str, Any] | None = None) -> Build:
    """Builds the case's draft; `shape` in place of the case's own."""
    node = dict(NODES[case.draft])
    if case.draft != "none":
        node |= SHAPES[case.shape] if shape is None else shape
    if case.draft == "small":
        node["path"] = small(case.arch, size)
    if case.draft.startswith("eagle"):
        node["path"] = head(case.arch, size, int(case.draft[-1]))
    if case.draft == "medusa":
        node["path"] = medusa(case.arch, size)

    def build(context: DraftContext) -> Draft:
        cls = get("draft", node["name"])
        draft: Draft = cls(build_config(cls, node), context)
        # Every look at the clock takes a second, so that runs are alike.
        ticks = count()
        automatic = case.draft == "adaptive"
        return AdaptiveDraft(draft, context.ranks, lambda: next(ticks)) if automatic else draft

    return build


@cache
def small(arch: str, size: Size) -> str:
    """A folder with the target itself, a little noise on its LM head."""
    return save_draft(Path(mkdtemp()), size.std, arch, **size.options)


@cache
def head(arch: str, size: Size, version: int) -> str:
    """A folder with an EAGLE head that hands the target's last hidden state on: it expects the last
    token to come again, as it often does in these models' texts."""
    target = setup_of(arch, size).target
    width, layers = target.hidden_size, target.num_layers
    torch.manual_seed(4)
    made = Head(
        HeadConfig(
            version,
            hidden=width,
            target_hidden=width,
            intermediate=24,
            heads=4,
            kv_heads=2,
            head_dim=8,
            vocab=target.vocab_size,
            draft_vocab=target.vocab_size,
            capture=(layers,) if version == 1 else (1, 2, layers),
        )
    ).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(0.1 if parameter.ndim > 1 else 1.0)
        made.fc.weight[:, -width:] += torch.eye(width)
        if version == 3:
            made.lm_head.weight.copy_(target.model.get_output_embeddings().weight)
    folder = Path(mkdtemp())
    save_head(made, folder, torch.float64)
    return str(folder)


@cache
def medusa(arch: str, size: Size) -> str:
    """A folder with three Medusa heads that nearly hand the target's last hidden state on, and know
    all tokens but the last: they, too, expect the last token to come again."""
    target = setup_of(arch, size).target
    known = torch.arange(target.vocab_size - 1)
    torch.manual_seed(4)
    made = MedusaHeads.fresh(3, 1, target.hidden_size, target.vocab_size, known).double()
    with torch.no_grad():
        made.weight.add_(0.02 * torch.randn_like(made.weight))
    folder = Path(mkdtemp())
    save_medusa(made, folder, torch.float64, arch, {})
    return str(folder)
