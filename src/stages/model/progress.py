"""Progress on the terminal, and silence from libraries that print their own."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from huggingface_hub.utils import logging as hub_logging
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from transformers.utils import logging


@contextmanager
def bar(text: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal's standard error, gone when done; yields a setter of what is completed.

    Without `total` it only shows that work goes on. Prints nothing when there is no terminal.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def quiet(downloads: bool = False) -> Iterator[None]:
    """Silence transformers and the Hub; `downloads` leaves the Hub's bars on a terminal."""
    hub: Any = import_module("huggingface_hub.utils")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub_bars = not hub.are_progress_bars_disabled()
    hub_level = hub_logging.get_verbosity()
    logging.set_verbosity_error()
    hub_logging.set_verbosity_error()
    logging.disable_progress_bar()
    if downloads and hub_bars and sys.stderr.isatty():
        hub.enable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        hub_logging.set_verbosity(hub_level)
        if bars:
            logging.enable_progress_bar()
        if hub_bars:
            hub.enable_progress_bars()
        else:
            hub.disable_progress_bars()
