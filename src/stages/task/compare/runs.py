"""Run folders, read back."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from draftmesh.registry import UserError
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.records.files import ERROR, OVERRIDES, PARAMS, RESULTS

_ABSENT = object()


@dataclass(frozen=True)
class Run:
    """One run: what was chosen, and what came of it.

    `overrides` are those of its command line, `config` is the resolved configuration; `params` and
    `config` are empty for a run that was refused, `results` for one that did not finish.
    """

    folder: Path
    name: str
    overrides: Mapping[str, str]
    params: Mapping[str, Scalar]
    config: Mapping[str, Any]
    machine: tuple[str, ...]
    results: Mapping[str, Scalar]
    error: str = ""

    def chosen(self, option: str) -> Scalar:
        """The value of an option or the choice of a group; None if the run had no such option."""
        node: Any = self.config
        for key in option.split("."):
            node = node.get(key, _ABSENT) if isinstance(node, Mapping) else _ABSENT
        a_group = isinstance(node, Mapping) and "." not in option
        if node is not _ABSENT and not a_group:
            return node if isinstance(node, str | int | float | bool) else _text(node)
        if option in self.overrides:
            return _typed(self.overrides[option])
        return self.params.get(option)

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
        places = [folder, *(path.parents[1] for path in folder.rglob(OVERRIDES))]
        places += [path.parents[1] for path in folder.rglob(PARAMS)]
        here = [place for place in sorted(set(places), key=_in_order) if is_run(place)]
        if not here:
            raise UserError(f"task.runs: there is no run in {folder}")
        found |= {place: _read(place) for place in here}
    return list(found.values())


def is_run(folder: Path) -> bool:
    """Whether a run was at least attempted there; task=list and task=compare leave neither."""
    return (folder / PARAMS).exists() or (folder / ERROR).exists()


def last_multirun(outputs: Path) -> Path:
    """The newest multirun with a finished run. Raises UserError if there is none."""
    finished = (path.parents[1] for path in outputs.glob(f"*/*/*/{RESULTS}"))
    folders = [folder for folder in finished if (folder / "multirun.yaml").exists()]
    if not folders:
        raise UserError(
            f"task.runs: there is no multirun in {outputs}; name the runs to compare: "
            "task.runs=[<folder>,<folder>]"
        )
    return max(folders)


def _read(folder: Path) -> Run:
    known, error, overrides = _json(folder / PARAMS), _error(folder), _overrides(folder)
    surroundings = _json(folder / "environment.json")
    return Run(
        folder,
        str(known.get("name", " ".join(f"{k}={v}" for k, v in overrides.items()))),
        overrides,
        known.get("params", {}),
        _yaml(folder / "config/resolved.yaml") or {},
        tuple(str(surroundings.get(key)) for key in ("host", "cpu", "gpus")),
        {} if error else _json(folder / RESULTS),
        error,
    )


def _error(folder: Path) -> str:
    path = folder / ERROR
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def _overrides(folder: Path) -> dict[str, str]:
    pairs = (str(line).lstrip("+").partition("=") for line in _yaml(folder / OVERRIDES) or [])
    return {key: value.strip("'\"") for key, _, value in pairs}


def _typed(text: str) -> Scalar:
    """What an override says, as the configuration of a run that got one would hold it."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"task.runs: {path} cannot be read ({error})") from None


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
