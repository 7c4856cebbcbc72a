"""A run that is open in an MLflow store, written in batches; errors are MLflow's own."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from draftmesh.registry.contracts.tracking import RunStatus, Scalar
from draftmesh.stages.tracking import names

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

FLUSH_S = 5.0
PARAMS, TAGS, METRICS = 100, 100, 1000  # the most that one batch may hold

T = TypeVar("T")


class OpenRun:
    """One request per batch: a single `log_metric` costs as much as a batch of hundreds."""

    def __init__(self, client: "MlflowClient", run_id: str) -> None:
        self.client, self.run_id = client, run_id
        self.metrics: list[Metric] = []
        self.dropped: set[str] = set()
        self.flushed = time.monotonic()

    def params(self, params: Mapping[str, Scalar]) -> None:
        """Write the parameters."""
        from mlflow.entities import Param

        for part in _batches([Param(k, v) for k, v in names.params(params).items()], PARAMS):
            self.client.log_batch(self.run_id, params=part)

    def tags(self, tags: Mapping[str, str]) -> None:
        """Write tags."""
        from mlflow.entities import RunTag

        for part in _batches([RunTag(k, v) for k, v in names.tags(tags).items()], TAGS):
            self.client.log_batch(self.run_id, tags=part)

    def buffer(self, metrics: Mapping[str, float], step: int | None) -> None:
        """Keep metrics for a later batch, written at once when the last one is a while ago."""
        from mlflow.entities import Metric

        kept, dropped = names.finite(metrics)
        now = int(time.time() * 1000)
        self.metrics += [Metric(key, value, now, step or 0) for key, value in kept.items()]
        self.dropped.update(dropped)
        if time.monotonic() - self.flushed > FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write the buffered metrics; they stay buffered if that fails."""
        self.flushed = time.monotonic()
        while self.metrics:
            self.client.log_batch(self.run_id, metrics=self.metrics[:METRICS])
            del self.metrics[:METRICS]

    def artifacts(self, path: Path, folder: str | None) -> None:
        """Store a file or a folder's content."""
        if path.is_dir():
            self.client.log_artifacts(self.run_id, str(path), folder)
        else:
            self.client.log_artifact(self.run_id, str(path), folder)

    def dataset(self, name: str, source: Path, rows: int) -> None:
        """Record an input file; its digest is the first half of its sha256."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        dataset = Dataset(
            name,
            hashlib.sha256(source.read_bytes()).hexdigest()[:32],
            source_type="local",
            source=json.dumps({"uri": source.absolute().as_uri()}),
            profile=json.dumps({"num_rows": rows}),
        )
        context = [InputTag("mlflow.data.context", "inference")]
        self.client.log_inputs(self.run_id, [DatasetInput(dataset, context)])

    def close(self, status: RunStatus) -> None:
        """Set the final status."""
        self.client.set_terminated(self.run_id, status)


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
