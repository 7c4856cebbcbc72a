"""Hydra's command-line flags: which exist, and where they may stand."""

from itertools import pairwise

from draftmesh.registry import UserError

MULTIRUN = ("-m", "--multirun")
KNOWN = {
    *MULTIRUN,
    *("-h", "--help", "--hydra-help", "--version", "-c", "--cfg", "--resolve", "-p", "--package"),
    *("-r", "--run", "-sc", "--shell-completion", "-cp", "--config-path", "-cn", "--config-name"),
    *("-cd", "--config-dir", "--experimental-rerun", "-i", "--info"),
}

CFG = ("job", "hydra", "all")
"""What --cfg can show."""
NEEDY = {
    *("-p", "--package", "-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir"),
    "--experimental-rerun",
}


def is_multirun(arguments: list[str]) -> bool:
    """Whether every combination of the values is to be run."""
    return any(argument in MULTIRUN for argument in arguments)


def check_flags(arguments: list[str]) -> None:
    """Raises UserError for an argument with dashes that is no flag, such as --draft=ngram, and for
    a flag without its value."""
    for argument, following in pairwise([*arguments, ""]):
        flag, equals, value = argument.partition("=")
        if argument.startswith("-") and flag not in KNOWN:
            bare = argument.lstrip("-")
            hint = f"; options have no dashes: {bare}" if bare else ""
            raise UserError(f"{argument}: no such flag{hint}; see --help")
        _check_value(flag, value if equals else following)


def _check_value(flag: str, value: str) -> None:
    if flag in ("-c", "--cfg") and value not in CFG:
        raise UserError(f"{flag}: takes one of {', '.join(CFG)}, for example {flag} job")
    if flag in NEEDY and (not value or value.startswith("-")):
        raise UserError(f"{flag}: a value is needed: {flag} <value>")


def multirun_first(arguments: list[str]) -> list[str]:
    """The arguments with -m in front, since Hydra's parser refuses options on both sides of it."""
    flags = [argument for argument in arguments if argument in MULTIRUN]
    return flags[:1] + [argument for argument in arguments if argument not in MULTIRUN]
