"""Opening the MLflow store: the database, the experiment, and runs that their process left open."""

import logging
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from draftmesh.registry import UserError
from draftmesh.stages.tracking.processes import is_alive

if TYPE_CHECKING:
    from mlflow import MlflowClient

log = logging.getLogger(__name__)

_SQLITE = "sqlite:///"
_REACH_S = 10.0
_STALE_LIMIT = 200


def load_mlflow() -> Any:
    """The mlflow module, imported on first use, with its telemetry off unless the user set it."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    import mlflow

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return mlflow


def store_uri(uri: str | None, folder: str) -> str:
    """The tracking URI: the given one, or the SQLite file in `folder` by absolute path."""
    return uri or f"{_SQLITE}{Path(folder).absolute() / 'mlflow.db'}"


def is_server(uri: str) -> bool:
    """Whether the store is a tracking server rather than a database."""
    return uri.startswith(("http://", "https://"))


def open_store(uri: str, experiment: str) -> tuple["MlflowClient", str]:
    """A client and the id of the experiment, which is created when missing.

    MLflow's migration of a fresh SQLite file fails when two processes start it at once, so the
    first use is behind a file lock. Raises UserError, naming the option, when the store cannot be
    opened.
    """
    if is_server(uri):
        _reach(uri)
    mlflow = load_mlflow()
    try:
        if not uri.startswith(_SQLITE):
            client = mlflow.MlflowClient(uri, uri)
            return client, _experiment(client, experiment, None)
        folder = Path(uri.removeprefix(_SQLITE)).absolute().parent
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".mlflow.lock"):
            client = mlflow.MlflowClient(uri, uri)
            return client, _experiment(client, experiment, (folder / "mlruns").as_uri())
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"cannot open the MLflow store {uri} ({first_line(error)}); "
            "change tracking.uri or tracking.folder, or take tracking=none"
        ) from error


def first_line(error: BaseException) -> str:
    """An error in one line of at most 200 characters."""
    lines = str(error).strip().splitlines() or [""]
    return (f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__)[:200]


def close_stale_runs(client: "MlflowClient", experiment_id: str, host: str) -> int:
    """Mark KILLED the runs of this host that are RUNNING although their process is gone."""
    running = client.search_runs(
        [experiment_id],
        f"attributes.status = 'RUNNING' and tags.host = '{host}'",
        max_results=_STALE_LIMIT,
    )
    closed = 0
    for run in running:
        pid, started = run.data.tags.get("pid", ""), run.data.tags.get("pid.started", "")
        if pid.isdigit() and not is_alive(int(pid), started):
            client.set_terminated(run.info.run_id, "KILLED")
            closed += 1
    return closed


def _reach(uri: str) -> None:
    """Fail at once where MLflow's own retries would take minutes."""
    try:
        urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=_REACH_S).close()
    except urllib.error.HTTPError:
        return
    except OSError as error:
        raise UserError(
            f"no MLflow server answers at tracking.uri={uri} ({error}); "
            "start it, change tracking.uri, or take tracking=none"
        ) from error


def _experiment(client: "MlflowClient", name: str, artifacts: str | None) -> str:
    found = client.get_experiment_by_name(name)
    if found is None:
        return str(client.create_experiment(name, artifact_location=artifacts))
    if found.lifecycle_stage != "active":
        raise UserError(
            f"experiment {name!r} was deleted; restore it with `mlflow experiments restore "
            f"-x {found.experiment_id}` or choose another tracking.experiment"
        )
    if artifacts and found.artifact_location != artifacts:
        log.warning(
            "experiment %r keeps its artifacts in %s, as when it was created; "
            "another tracking.experiment starts afresh here",
            name,
            found.artifact_location,
        )
    return str(found.experiment_id)
