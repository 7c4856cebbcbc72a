from types import SimpleNamespace

import pytest
from transformers import LlamaConfig

from draftmesh.stages.model.eos import eos_ids


@pytest.mark.parametrize(
    ("generation", "config", "tokenizer", "expected"),
    [
        (None, None, None, ()),
        (5, None, None, (5,)),
        ([7, 5], 3, None, (3, 5, 7)),
        (None, [2, 4], 9, (2, 4, 9)),
        (0, 0, 0, (0,)),
    ],
)
def test_every_source_counts(generation, config, tokenizer, expected):
    model = SimpleNamespace(
        generation_config=SimpleNamespace(eos_token_id=generation),
        config=LlamaConfig(eos_token_id=config),
    )
    assert eos_ids(model, SimpleNamespace(eos_token_id=tokenizer)) == expected


def test_a_model_without_tokenizer_or_generation_config():
    model = SimpleNamespace(config=LlamaConfig(eos_token_id=4))
    assert eos_ids(model, None) == (4,)
