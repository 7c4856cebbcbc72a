"""Free text on the command line, so that `prompt="What's 2+2, please?"` needs no second quoting."""

import re

from draftmesh.cli.flags import is_multirun
from draftmesh.registry.config import double_backslashes_before, literal_text

TEXT_OPTIONS = ("prompt",)


def quote_text(arguments: list[str]) -> list[str]:
    """Quote the values of free-text options for Hydra's grammar.

    A value that is already quoted for Hydra, or `null`, is left alone; with -m nothing is quoted,
    since a comma may then mean a sweep.
    """
    if is_multirun(arguments):
        return arguments
    return [_quote_option(argument) for argument in arguments]


def _quote_option(argument: str) -> str:
    option, equals, value = argument.partition("=")
    if not equals or option not in TEXT_OPTIONS or value == "null" or _is_quoted(value):
        return argument
    return f"{option}={quoted(value)}"


def _is_quoted(value: str) -> bool:
    return re.fullmatch(r"""(['"])(?:\\.|(?!\1)[^\\])*\1""", value, re.DOTALL) is not None


def quoted(text: str) -> str:
    """The text as a quoted string of Hydra's grammar, without interpolation."""
    text = double_backslashes_before(literal_text(text), "'")
    text += "\\" * (len(text) - len(text.rstrip("\\")))
    return "'" + text.replace("'", "\\'") + "'"
