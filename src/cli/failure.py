"""Errors become one line on standard error and an exit code."""

import errno
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from draftmesh.cli.flags import is_multirun
from draftmesh.cli.override_errors import explain, is_about_a_group
from draftmesh.registry import UserError
from draftmesh.stages.task.records.files import ERROR, write_text

UNWRITABLE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ENOENT,
}

FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
"""What places the folders of a run and of a multirun."""


def guard(action: Callable[[], int], run_dir: Path | None, *, debug: bool) -> int:
    """The action's exit code; 2 after a user's mistake, 130 when interrupted, 1 after other errors.

    `run_dir` is None before Hydra has made the run folder.
    """
    try:
        return action()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        _say("interrupted", run_dir)
        return 130
    except Exception as error:
        if debug:
            traceback.print_exc()
        text, code = _judge(error, run_dir)
        _say(text, run_dir)
        return code


def _judge(error: Exception, run_dir: Path | None) -> tuple[str, int]:
    if isinstance(error, HydraException | OmegaConfBaseException) or is_about_a_group(error):
        return explain(error, sys.argv[1:]), 2
    if isinstance(error, UserError):
        return _one_line(str(error)), 2
    if isinstance(error, OSError) and error.errno in UNWRITABLE and _is_output(error, run_dir):
        where = error.filename or run_dir
        option = FOLDERS[is_multirun(sys.argv[1:])]
        return f"{option}: cannot write to {where}: {error.strerror}", 2
    text = _one_line(f"{type(error).__name__}: {error}")
    return f"failed: {text} (debug=true shows the traceback)", 1


def _is_output(error: OSError, run_dir: Path | None) -> bool:
    """A failed write knows no file name; before the run folder exists, only Hydra writes. What is
    not there is more often an input."""
    if error.errno == errno.ENOENT:
        return run_dir is None and _leads_to_run_folder(Path(str(error.filename)))
    if run_dir is None or error.filename is None:
        return True
    return Path(str(error.filename)).absolute().is_relative_to(run_dir.absolute())


def _leads_to_run_folder(path: Path) -> bool:
    """Whether it is a folder that the command line wants the runs in, or one above it."""
    pairs = (argument.partition("=") for argument in sys.argv[1:])
    wanted = (Path(folder) for key, _, folder in pairs if key in FOLDERS)
    return any(folder.absolute().is_relative_to(path.absolute()) for folder in wanted)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _say(text: str, run_dir: Path | None) -> None:
    with suppress(OSError):  # the terminal may be gone
        print(f"draftmesh: {text}", file=sys.stderr, flush=True)
    if run_dir is not None and run_dir.is_dir():
        with suppress(UserError):
            write_text(run_dir / ERROR, text + "\n")
