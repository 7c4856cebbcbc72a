import pytest
from harness import save_draft


@pytest.fixture(scope="session")
def near(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A draft model that often agrees with `tiny("llama")`."""
    return save_draft(tmp_path_factory.mktemp("near"), noise=0.15)
