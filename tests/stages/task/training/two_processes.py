"""One process of a training: two_processes.py <folder>, with torchrun's variables set."""

import os
import random
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from transformers import LlamaConfig, LlamaForCausalLM

from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.stages.model.bytetokenizer import byte_tokenizer
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.task.train import knobs
from draftmesh.stages.task.training.corpus import Chat, Corpus
from draftmesh.stages.task.training.eagle.options import EagleOptions
from draftmesh.stages.task.training.eagle.recipe import EagleRecipe
from draftmesh.stages.task.training.loop import Trainer
from draftmesh.stages.task.training.material import Material
from draftmesh.stages.task.training.options import TrainOptions
from draftmesh.stages.task.training.progress import Progress


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    checkpoint = Checkpoint("tiny", None, model, byte_tokenizer(64), (0,))
    chance = random.Random(0)
    chats = [Chat(tuple(chance.choices(range(2, 30), k=24)), 6, greedy=True) for _ in range(24)]
    options = TrainOptions(
        batch_tokens=96,
        precision="no",
        held_out=0.2,
        epochs=2,
        eagle=EagleOptions(draft_vocab=40, steps=[2]),
    )
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    with accelerator.main_process_first():
        corpus, target = Corpus("made up", chats), HFTarget(model)
        material = Material(checkpoint, target, corpus, folder / "features", options, 0)
        recipe = EagleRecipe(material)
    world = accelerator.num_processes
    progress = Progress(options.epochs, len(recipe.epoch(0)) // world, None)
    trainer = Trainer(
        recipe.plan(accelerator),
        knobs(options),
        progress,
        accelerator,
        folder / "run",
        lambda metrics, step: None,
        lambda state, loss: None,
    )
    trainer.run()
    result = {"weights": recipe.head.state_dict(), "step": progress.step, "world": world}
    torch.save(result, folder / f"rank{os.environ['RANK']}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
