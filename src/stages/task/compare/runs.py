"""Run folders, read back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from draftmesh.registry import UserError
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.records.files import ERROR, OVERRIDES, PARAMS


@dataclass(frozen=True)
class Run:
    """One run: what was chosen, and what came of it (`results` is empty if it did not finish)."""

    folder: Path
    name: str
    params: Mapping[str, Scalar]
    results: Mapping[str, Scalar]
    error: str = ""

    def number(self, key: str) -> float | None:
        """A numeric result; None if it is absent or does not apply."""
        value = self.results.get(key)
        return float(value) if isinstance(value, int | float) else None


def find_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs in these folders and below, jobs of a multirun in their order.

    Raises UserError for a folder without any.
    """
    found: dict[Path, Run] = {}
    for folder in folders:
        places = {path.parents[1] for name in (PARAMS, OVERRIDES) for path in folder.rglob(name)}
        if not places:
            raise UserError(f"task.runs: there is no run in {folder}")
        found |= {place: _read(place) for place in sorted(places, key=_in_order)}
    return list(found.values())


def last_multirun(outputs: Path) -> Path:
    """The newest multirun's folder. Raises UserError if there is none."""
    folders = [path.parent for path in outputs.glob("*/*/multirun.yaml")]
    if not folders:
        raise UserError(
            f"there is no multirun in {outputs}: name the runs to compare, task.runs=[<folder>,...]"
        )
    return max(folders)


def _read(folder: Path) -> Run:
    known = _json(folder / PARAMS)
    error = _error(folder)
    overrides = _overrides(folder)
    return Run(
        folder,
        str(known.get("name", " ".join(f"{k}={v}" for k, v in overrides.items()))),
        known.get("params", overrides),
        {} if error else _json(folder / "results.json"),
        error,
    )


def _error(folder: Path) -> str:
    path = folder / ERROR
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def _overrides(folder: Path) -> dict[str, str]:
    """What was chosen for a run that ended before its parameters were known."""
    path = folder / OVERRIDES
    lines = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []
    pairs = (line.lstrip("+").partition("=") for line in lines or [])
    return {key: value for key, _, value in pairs}


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"task.runs: {path} cannot be read ({error})") from None
    return content if isinstance(content, dict) else {}


def _in_order(folder: Path) -> tuple[Path, int, str]:
    name = folder.name
    return folder.parent, int(name) if name.isdigit() else -1, name
