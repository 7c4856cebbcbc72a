"""What a finished folder holds, so that a damaged one is noticed."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

_NAME = ".manifest.json"


def file_sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path) -> None:
    """Record size, time of change and sha256 of every file of a flat folder."""
    files = {path.name: _entry(path) for path in sorted(folder.iterdir()) if path.name != _NAME}
    temporary = folder / f"{_NAME}.{os.getpid()}"
    temporary.write_text(json.dumps(files, indent=1))
    temporary.replace(folder / _NAME)


def intact(folder: Path) -> bool:
    """Whether the folder is as its manifest says.

    Sizes and times are compared at every start; a file whose time differs is hashed once.
    """
    try:
        files = json.loads((folder / _NAME).read_text())
        same = [_same(folder / name, entry) for name, entry in files.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    if None in same and False not in same:
        return _rehash(folder, files)
    return all(same)


def sync(folder: Path) -> None:
    """Force a folder's files to disk, so that a power cut cannot leave an empty one behind."""
    for path in (*folder.iterdir(), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _entry(path: Path) -> dict[str, Any]:
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": file_sha256(path)}


def _same(path: Path, entry: dict[str, Any]) -> bool | None:
    """None when only the contents can tell."""
    stat = path.stat()
    if stat.st_size != entry["size"]:
        return False
    return True if stat.st_mtime_ns == entry["mtime_ns"] else None


def _rehash(folder: Path, files: dict[str, dict[str, Any]]) -> bool:
    if any(file_sha256(folder / name) != entry["sha256"] for name, entry in files.items()):
        return False
    try:
        write_manifest(folder)
    except OSError:
        return True  # a read-only cache is hashed at every start
    return True
