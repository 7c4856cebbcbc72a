import logging
import shutil
import socket
from pathlib import Path

import pytest

from draftmesh.registry import UserError
from draftmesh.stages.tracking.store import open_store, store_uri


def test_the_default_store_is_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_uri(None, "outputs") == f"sqlite:///{tmp_path}/outputs/mlflow.db"
    assert store_uri("http://host:5000", "outputs") == "http://host:5000"


def test_artifacts_lie_beside_the_database(folder: Path) -> None:
    client, experiment = open_store(store_uri(None, str(folder)), "one")
    assert client.get_experiment(experiment).artifact_location == (folder / "mlruns").as_uri()
    assert open_store(store_uri(None, str(folder)), "one")[1] == experiment


def test_a_broken_database_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("this is no database, " * 100)
    with pytest.raises(UserError, match=r"tracking\.uri"):
        open_store(store_uri(None, str(tmp_path)), "one")


def test_a_folder_that_cannot_be_made_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"tracking\.folder"):
        open_store(store_uri(None, str(tmp_path / "file" / "outputs")), "one")


def test_a_deleted_experiment_names_the_option(folder: Path) -> None:
    client, experiment = open_store(store_uri(None, str(folder)), "one")
    client.delete_experiment(experiment)
    with pytest.raises(UserError, match=r"tracking\.experiment"):
        open_store(store_uri(None, str(folder)), "one")


def test_an_absent_server_is_told_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UserError, match=r"tracking\.uri=http://127"):
        open_store(uri, "one")


def test_a_moved_store_says_where_artifacts_go(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_store(store_uri(None, str(folder)), "one")
    moved = folder / "moved"
    moved.mkdir()
    shutil.copy(folder / "mlflow.db", moved)
    with caplog.at_level(logging.WARNING):
        open_store(store_uri(None, str(moved)), "one")
    assert str(folder / "mlruns") in caplog.text
