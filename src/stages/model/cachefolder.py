"""Folders that are made once, whole, and shared by every process of the machine."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from draftmesh.registry.errors import UserError
from draftmesh.stages.model.manifest import intact, sync, write_manifest

Build = Callable[[Path, Path], None]


def cache_root() -> Path:
    """`$DRAFTMESH_CACHE`, else draftmesh's folder in the user's cache folder."""
    if chosen := os.environ.get("DRAFTMESH_CACHE"):
        return Path(chosen).expanduser()
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(user).expanduser() / "draftmesh"


def ready_folder(name: str, build: Build, needs: int = 0) -> Path:
    """The folder models/<name> of the cache, complete.

    When it is missing or damaged, `build(work, out)` fills the empty folder `out` (`work` is for
    what it needs on the way, `needs` bytes in all), and `out` takes its place in one rename. One
    process builds, the others wait; what an interrupted one left behind is removed. Raises
    UserError when the cache cannot be written.
    """
    parent = cache_root() / "models"
    folder = parent / name
    if intact(folder):
        return folder
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _lock(parent / f".{name}.lock"):
            if not intact(folder):
                _rebuild(folder, build, needs)
    except OSError as error:
        raise UserError(
            f"cannot fill the model cache {parent} ({error.strerror or error}); "
            "set DRAFTMESH_CACHE to a writable folder with space"
        ) from error
    return folder


def _rebuild(folder: Path, build: Build, needs: int) -> None:
    parent, prefix = folder.parent, f".{folder.name}.tmp-"
    for stale in parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    free = shutil.disk_usage(parent).free
    if free < needs:
        raise OSError(errno.ENOSPC, f"{free >> 20} MB free, {needs >> 20} MB needed")
    temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    work, out, old = temporary / "work", temporary / "out", temporary / "old"
    try:
        work.mkdir()
        out.mkdir()
        build(work, out)
        write_manifest(out)
        sync(out)
        if folder.exists():
            folder.rename(old)
        out.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the kernel lets go of it when the process dies
        yield
