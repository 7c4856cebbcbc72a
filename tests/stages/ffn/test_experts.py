from types import SimpleNamespace

import pytest
from ranked_models import tiny

from draftmesh.stages.ffn.experts import count_parameters


@pytest.mark.parametrize("name", ["num_experts_per_tok", "top_k_experts"])
def test_experts_per_token_whatever_the_configuration_calls_them(name: str) -> None:
    model = tiny("mixtral")
    configuration = SimpleNamespace(**{name: 3})
    model.config = SimpleNamespace(get_text_config=lambda: configuration)
    assert count_parameters(model) == count_parameters(model, 3) != count_parameters(model, 1)
