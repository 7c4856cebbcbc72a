"""Hydra's command-line flags: which exist, and where they may stand."""

from draftmesh.registry import UserError

MULTIRUN = ("-m", "--multirun")
KNOWN = {
    *MULTIRUN,
    *("-h", "--help", "--hydra-help", "--version", "-c", "--cfg", "--resolve", "-p", "--package"),
    *("-r", "--run", "-sc", "--shell-completion", "-cp", "--config-path", "-cn", "--config-name"),
    *("-cd", "--config-dir", "--experimental-rerun", "-i", "--info"),
}


def is_multirun(arguments: list[str]) -> bool:
    """Whether every combination of the values is to be run."""
    return any(argument in MULTIRUN for argument in arguments)


def check_flags(arguments: list[str]) -> None:
    """Raises UserError for an argument with dashes that is no flag, such as --draft=ngram."""
    for argument in arguments:
        if argument.startswith("-") and argument.partition("=")[0] not in KNOWN:
            bare = argument.lstrip("-")
            hint = f"; options have no dashes: {bare}" if bare else ""
            raise UserError(f"{argument}: no such flag{hint}; see --help")


def multirun_first(arguments: list[str]) -> list[str]:
    """The arguments with -m in front, since Hydra's parser refuses options on both sides of it."""
    flags = [argument for argument in arguments if argument in MULTIRUN]
    return flags[:1] + [argument for argument in arguments if argument not in MULTIRUN]
