import gzip
import json
import random
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.stages.model.bytetokenizer import byte_tokenizer
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.task.training.corpus import Corpus, load_corpus
from draftmesh.stages.task.training.eagle.options import EagleOptions
from draftmesh.stages.task.training.eagle.recipe import EagleRecipe
from draftmesh.stages.task.training.material import Material
from draftmesh.stages.task.training.options import TrainOptions


@pytest.fixture(scope="session")
def checkpoint() -> Checkpoint:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    return Checkpoint("tiny", None, model, byte_tokenizer(64), (0,))


@pytest.fixture
def chats_file(tmp_path: Path) -> Path:
    """24 chats of small words; two thirds are marked greedy."""
    chance = random.Random(0)
    path = tmp_path / "chats.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for number in range(24):
            words = ["".join(chance.choices("abcde", k=3)) for _ in range(9)]
            row = {
                "style": "even" if number % 2 else "odd",
                "prompt": f"{number} " + " ".join(words[:4]),
                "response": " ".join(words[4 : 5 + number % 5]),
                "temperature": 0.0 if number % 3 else 0.8,
                "finish": "stop" if number % 4 else "length",
            }
            file.write(json.dumps(row) + "\n")
    return path


OPTIONS = {
    "batch_tokens": 128,
    "precision": "no",
    "held_out": 0.2,
    "warmup": 4,
    "epochs": 2,
}


@pytest.fixture
def make_material(
    checkpoint: Checkpoint, chats_file: Path, tmp_path: Path
) -> Callable[..., Material]:
    def make(**changes: object) -> Material:
        options = TrainOptions(**(OPTIONS | changes))  # type: ignore[arg-type]
        corpus = Corpus(chats_file.name, load_corpus(chats_file, checkpoint.tokenizer, 0))
        target = HFTarget(checkpoint.model)
        return Material(checkpoint, target, corpus, tmp_path / "features", options, 0)

    return make


@pytest.fixture
def make_recipe(make_material: Callable[..., Material]) -> Callable[..., EagleRecipe]:
    def make(**changes: object) -> EagleRecipe:
        own = {f.name for f in fields(EagleOptions)} & set(changes)
        node = {"draft_vocab": 40, "steps": [3]} | {name: changes.pop(name) for name in own}
        return EagleRecipe(make_material(eagle=EagleOptions(**node), **changes))  # type: ignore[arg-type]

    return make
