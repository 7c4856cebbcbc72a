from dataclasses import dataclass

import pytest

from draftmesh.registry import UserError
from draftmesh.registry.config import merge_config


@dataclass(frozen=True)
class Config:
    k: int = 5


@pytest.mark.parametrize(("prefix", "auto"), [("draft.", True), ("data.", False)])
def test_the_error_for_draft_k_says_that_it_can_be_auto(prefix, auto):
    with pytest.raises(UserError) as error:
        merge_config(Config, {"k": "abc"}, prefix)
    assert str(error.value).startswith(f"{prefix}k: Value 'abc'")
    assert str(error.value).endswith("takes a number, or auto") == auto
