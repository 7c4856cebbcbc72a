"""SmolLM2 from GGUF to a Hugging Face folder."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer

from draftmesh.stages.model.progress import bar, quiet

_END_OF_TEXT = 0  # <|endoftext|>, which the GGUF file only names as the unknown token


def convert(gguf: Path, out: Path) -> None:
    """Fill `out` with the exact float32 weights as safetensors, configs and tokenizer."""
    with bar("Converting SmolLM2-135M-Instruct, once", 1.0) as done, quiet(), _reported(done):
        model: Any = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    del model.config.quantization_config  # the weights are plain now
    model.hf_quantizer = None
    model.is_quantized = False
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, _END_OF_TEXT]
    with quiet():
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    _split_digits(out / "tokenizer.json")
    (out / "model.safetensors").chmod((out / "config.json").stat().st_mode)  # others may read it


def _split_digits(path: Path) -> None:
    """Digits one by one, as the GGUF file asks (`pre` is smollm) and transformers ignores."""
    tokenizer = Tokenizer.from_file(str(path))
    bytes_ = ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), bytes_])
    tokenizer.save(str(path))


@contextmanager
def _reported(done: Callable[[float], None]) -> Iterator[None]:
    """Send the progress of transformers' dequantisation to `done` in place of its own bar."""

    def steps(tensors: Any, **_: Any) -> Iterator[Any]:
        for index, tensor in enumerate(tensors):
            yield tensor
            done((index + 1) / len(tensors))

    reader: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    original = reader.tqdm
    reader.tqdm = steps
    try:
        yield
    finally:
        reader.tqdm = original
