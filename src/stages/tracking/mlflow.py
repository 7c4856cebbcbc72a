"""Runs recorded in MLflow."""

import getpass
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from draftmesh.registry import UserError, register
from draftmesh.registry.contracts.tracking import RunStatus, Scalar
from draftmesh.stages.tracking import names
from draftmesh.stages.tracking.openrun import OpenRun
from draftmesh.stages.tracking.processes import own_identity
from draftmesh.stages.tracking.store import (
    close_stale_runs,
    first_line,
    is_server,
    open_store,
    store_uri,
)

log = logging.getLogger(__name__)


@register("tracking", "mlflow")
class MlflowTracker:
    """Record runs in MLflow: a SQLite file beside the runs, or any tracking server.

    Everything goes through MlflowClient with an explicit URI: no global state, no environment
    variable, no active run that a later job could inherit.
    """

    @dataclass(frozen=True)
    class Config:
        """Where to record.

        `folder` holds mlflow.db and mlruns/ unless `uri` names another store; `run_name` replaces
        the name made from the configuration.
        """

        name: str = "mlflow"
        folder: str = "outputs"
        uri: str | None = None
        experiment: str = "draftmesh"
        run_name: str | None = None

    def __init__(self, config: Config) -> None:
        self.config = config
        self.uri = store_uri(config.uri, config.folder)
        self.run_id: str | None = None
        self._run: OpenRun | None = None
        self._page = ""
        self._failures: set[str] = set()

    def start(
        self,
        run_name: str,
        params: Mapping[str, Scalar],
        tags: Mapping[str, str],
        parent: str | None = None,
    ) -> None:
        """Open the store and a run in it; raises UserError when that fails.

        Runs of this host whose process is gone are marked KILLED first.
        """
        if not self.config.experiment.strip():
            raise UserError("tracking.experiment is empty; give the experiment a name")
        client, experiment = open_store(self.uri, self.config.experiment)
        identity = own_identity()
        with self._guard("close the runs that died"):
            closed = close_stale_runs(client, experiment, identity["host"])
            if closed:
                log.info("%d earlier run(s) whose process died are now marked KILLED", closed)
        try:
            run = client.create_run(
                experiment,
                tags=names.tags({**tags, **identity, **_columns(tags, parent)}),
                run_name=self.config.run_name or run_name,
            )
        except Exception as error:
            raise UserError(
                f"cannot record a run in {self.uri} ({first_line(error)}); "
                "change tracking.uri or tracking.folder, or take tracking=none"
            ) from error
        self.run_id = str(run.info.run_id)
        self._page = f"/#/experiments/{experiment}/runs"
        self._run = OpenRun(client, self.run_id)
        with self._guard("record the parameters"):
            self._run.params(params)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Record values; they are written a few seconds later or at `finish`, many at a time."""
        if self._run is not None:
            with self._guard("record metrics"):
                self._run.buffer(metrics, step)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Add tags that are only known later."""
        if self._run is not None:
            with self._guard("record tags"):
                self._run.tags(tags)

    def log_artifacts(self, path: Path, folder: str | None = None) -> None:
        """Copy a file, or what a folder holds, to the run's artifacts."""
        if self._run is not None:
            with self._guard(f"store {path}"):
                self._run.artifacts(path, folder)

    def log_dataset(self, name: str, source: Path, rows: int) -> None:
        """Record the prompt file as the run's input dataset."""
        if self._run is not None:
            with self._guard(f"record the data set {name}"):
                self._run.dataset(name, source, rows)

    def finish(self, status: RunStatus, error: BaseException | None = None) -> None:
        """Write what is buffered and close the run with its status; a second call does nothing."""
        run, self._run = self._run, None
        if run is None:
            return
        with self._guard("record the last metrics"):
            run.flush()
        with self._guard("record the last tags"):
            run.tags(_last_tags(run, error))
        with self._guard(f"mark the run {status}"):
            run.close(status)

    def where(self) -> str | None:
        """The run's id and what shows the table of runs."""
        if self.run_id is None:
            return None
        if is_server(self.uri):
            return f"MLflow run {self.run_id}: {self.uri.rstrip('/')}{self._page}"
        return (
            f"MLflow run {self.run_id}; to compare: mlflow ui --backend-store-uri {self.uri}, "
            f"then http://127.0.0.1:5000{self._page}"
        )

    @contextmanager
    def _guard(self, action: str) -> Iterator[None]:
        """A failure to record must not cost the run: one line says so, once."""
        try:
            yield
        except Exception as error:
            if action not in self._failures:
                reason = first_line(error)
                log.warning("tracking: could not %s (%s); the run goes on", action, reason)
            self._failures.add(action)


def _columns(tags: Mapping[str, str], parent: str | None) -> dict[str, str]:
    """The tags behind the columns of MLflow's own table, and the parent run."""
    found = {"mlflow.source.name": sys.argv[0], "mlflow.source.type": "LOCAL"}
    try:
        found["mlflow.user"] = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        found["mlflow.user"] = "unknown"
    if "git.sha" in tags:
        found["mlflow.source.git.commit"] = tags["git.sha"]
    if parent is not None:
        found["mlflow.parentRunId"] = parent
    return found


def _last_tags(run: OpenRun, error: BaseException | None) -> dict[str, str]:
    found = {}
    if run.dropped:
        found["metrics.dropped"] = ", ".join(sorted(run.dropped))
    if error is not None:
        found |= {
            "error.type": type(error).__name__,
            "error.message": str(error) or type(error).__name__,
        }
    return found
