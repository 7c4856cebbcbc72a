"""Where tables and lines are printed, and texts cut to fit."""

from rich.console import Console

PLAIN_WIDTH = 10_000
"""Columns where there is no terminal: piped text is not wrapped."""


def standard_output(width: int = PLAIN_WIDTH) -> Console:
    """A console for standard output; piped text is not coloured and has lines of up to `width`."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)


def shorten(text: str, length: int) -> str:
    """Text in one line of at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 3] + "..."
