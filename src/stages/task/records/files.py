"""Files of a run folder, written whole or not at all."""

import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from draftmesh.registry import UserError

PARAMS = "config/params.json"
"""A run's name and flat parameters, written before anything is run."""
OVERRIDES = ".hydra/overrides.yaml"
"""What the command line said about a run; Hydra writes it first of all."""
RESULTS = "results.json"
"""A finished run's flat results."""
ERROR = "error.txt"
"""Why a run ended early, in one line."""
SAMPLES = "samples.jsonl"
"""Completions, a line each, as soon as they are final."""
SERIES = "series.jsonl"
"""Metrics over time."""
WRITTEN = (
    *(RESULTS, ERROR, SAMPLES, SERIES, "report.html", "acceptance.json", "acceptance.csv"),
    *("expert_load.json", "certificate.json", "bench.json", "bench.csv"),
)
"""What a run may leave beside its configuration, and the next one in the folder must not find."""


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text through a temporary file beside it, so that a reader never sees half of it.

    Raises UserError when the folder cannot be written (read-only, disk full).
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(encode(text))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise unwritable(path, error) from error


def write_json(path: Path, value: Any) -> None:
    """Write JSON; NaN and infinities, which JSON does not have, become null."""
    write_text(path, json.dumps(finite(value), indent=2, ensure_ascii=False) + "\n")


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with a column for every key in the order of first appearance."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def unwritable(path: Path, error: OSError) -> UserError:
    """The error for a run folder that cannot be written."""
    return UserError(
        f"cannot write {path}: {error.strerror or error}; "
        "free some space or choose another folder with hydra.run.dir"
    )


def encode(text: str) -> bytes:
    """UTF-8; a lone surrogate becomes its escape, which JSON understands."""
    return text.encode("utf-8", "backslashreplace")


def finite(value: Any) -> Any:
    """The same value with None for NaN and infinities, tuples as lists, keys as strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
