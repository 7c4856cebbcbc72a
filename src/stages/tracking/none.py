"""No records besides the run folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from draftmesh.registry import register
from draftmesh.registry.contracts.tracking import RunStatus, Scalar


@register("tracking", "none")
class NoTracker:
    """Record nothing besides the run folder."""

    @dataclass(frozen=True)
    class Config:
        """No options of its own."""

        name: str = "none"

    def __init__(self, config: Config) -> None:
        self.run_id: str | None = None

    def start(
        self,
        run_name: str,
        params: Mapping[str, Scalar],
        tags: Mapping[str, str],
        parent: str | None = None,
    ) -> None:
        """Nothing to open."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Nothing is kept."""

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Nothing is kept."""

    def log_artifacts(self, path: Path, folder: str | None = None) -> None:
        """Nothing is kept."""

    def log_dataset(self, name: str, source: Path, rows: int) -> None:
        """Nothing is kept."""

    def finish(self, status: RunStatus, error: BaseException | None = None) -> None:
        """Nothing to close."""

    def where(self) -> str | None:
        """Nowhere."""
        return None
