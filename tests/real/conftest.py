import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest
import torch
from harness import Setup

from draftmesh.stages.model.progress import quiet
from draftmesh.stages.model.smollm2 import SmolLM2
from draftmesh.stages.model.target import HFTarget

LEFT_OUT = tuple(range(8, 24, 2))


@pytest.fixture(scope="module", autouse=True)
def _threads() -> Iterator[None]:
    """All cores where that is faster: on a busy machine threads mostly wait for each other."""
    before = torch.get_num_threads()
    counts = (1, len(os.sched_getaffinity(0)))
    torch.set_num_threads(min(counts, key=seconds))
    yield
    torch.set_num_threads(before)


def seconds(threads: int) -> float:
    """What some products of the model's size take."""
    torch.set_num_threads(threads)
    weights, state = torch.ones(1536, 576).double(), torch.ones(8, 576).double()
    start = perf_counter()
    for _ in range(300):
        torch.nn.functional.linear(state, weights)
    return perf_counter() - start


@pytest.fixture(scope="session")
def smollm2() -> Setup:
    """The default model in float64."""
    checkpoint = SmolLM2(SmolLM2.Config(dtype="float64")).load()
    return Setup(checkpoint, HFTarget(checkpoint.model))


@pytest.fixture(scope="session")
def smaller(smollm2: Setup, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A draft model's folder: the same model without some of its middle layers, in bfloat16."""
    folder: Path = tmp_path_factory.mktemp("smaller")
    model, tokenizer = smollm2.checkpoint.model, smollm2.checkpoint.tokenizer
    kept = [i for i in range(model.config.num_hidden_layers) if i not in LEFT_OUT]
    config = type(model.config).from_dict(
        model.config.to_dict() | {"num_hidden_layers": len(kept), "layer_types": None}
    )
    with torch.device("meta"):
        copy = type(model)(config)
    state = {name: value.bfloat16() for name, value in model.state_dict().items()}
    for new, old in enumerate(kept):
        inside, ours = f"model.layers.{old}.", f"model.layers.{new}."
        moved = {n: v for n, v in model.state_dict().items() if n.startswith(inside)}
        state |= {ours + n.removeprefix(inside): v.bfloat16() for n, v in moved.items()}
    wanted = copy.state_dict()
    with quiet():
        copy.save_pretrained(folder, state_dict={n: state[n] for n in wanted})
    tokenizer.save_pretrained(folder)
    return str(folder)
