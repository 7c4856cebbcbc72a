import shutil
from pathlib import Path

import pytest

from draftmesh.stages.tracking.store import open_store, store_uri


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An initialised MLflow database; making one takes seconds, copying it none."""
    folder = tmp_path_factory.mktemp("mlflow")
    open_store(store_uri(None, str(folder)), "unused")
    return folder / "mlflow.db"


@pytest.fixture
def folder(empty_database: Path, tmp_path: Path) -> Path:
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    return tmp_path
