"""Hydra's errors about the command line, in one line that names the option."""

import re
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf import OmegaConf

from draftmesh.registry import GROUPS
from draftmesh.registry.suggest import did_you_mean

NOT_A_GROUP_OPTION = "Config group override must be a string or a list"


def is_about_a_group(error: Exception) -> bool:
    """Whether it is Hydra's plain ValueError for `draft=3` or `draft=null`."""
    return isinstance(error, ValueError) and str(error).startswith(NOT_A_GROUP_OPTION)


def explain(error: Exception, arguments: list[str]) -> str:
    """One line for an error of Hydra or OmegaConf."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _missing_option(error)
    if isinstance(error, OverrideParseException):
        return _unreadable(str(error.override))
    if is_about_a_group(error):
        wrong = [a for a in arguments if a.partition("=")[0] in GROUPS]
        return f"{' '.join(wrong)}: each takes the name of an option; see --help"
    text = str(error).strip()
    if match := re.match(r"Could not override '(.+?)'\.", text):
        return _unknown_key(match[1], arguments)
    if match := re.match(r"Ambiguous value for argument '(.+?)'\n", text, re.DOTALL):
        key, _, value = match[1].partition("=")
        return (
            f"{match[1]}: several values need -m (a multirun); "
            f"a list is {key}=[{value}], one text is '{_hint(match[1])}'"
        )
    if key := getattr(error, "full_key", None):
        return f"{key}: {text.splitlines()[0]}"
    return " ".join(text.split())


def _unreadable(override: str) -> str:
    if "=" in override:
        return f"{override}: the value cannot be read; quote it: '{_hint(override)}'"
    return f"{override}: options are given as option=value; see --help"


def _missing_option(error: MissingConfigException) -> str:
    group, _, name = str(error.missing_cfg_file).rpartition("/")
    options = list(error.options or ())
    hint = did_you_mean(name, options)
    return f"{group}={name}: no such option{hint}; available: {', '.join(options) or 'none'}"


def _unknown_key(key: str, arguments: list[str]) -> str:
    alternatives = _alternatives(key.partition(".")[0], arguments)
    composed = [_known_keys(choices) for choices in alternatives.values()]
    pairs = zip(alternatives, composed, strict=True)
    lacking = [(choice, known) for choice, known in pairs if key not in known]
    if not lacking:
        return f"{key}: new keys are given with a plus sign: +{key}=..."
    choice, known = lacking[0]
    parent, dot, name = key.rpartition(".")
    siblings = [k.rpartition(".")[2] for k in known if k.rpartition(".")[0] == parent]
    if dot and siblings:
        hint = did_you_mean(name, siblings, f"{parent}.")
        where = choice if len(alternatives) > 1 else parent
        return f"{key}: no such option{hint}; options of {where}: {', '.join(siblings)}"
    return f"{key}: no such option{did_you_mean(key, known)}; see --help"


def _alternatives(group: str, arguments: list[str]) -> dict[str, list[str]]:
    """Each `group=choice` of the command line ("" if there is none), and the choices to compose:
    that one and one of each other group."""
    matches = (re.fullmatch(r"([a-z]+)=([\w,-]+)", a) for a in arguments)
    choices = {match[1]: match[2].split(",") for match in matches if match}
    fixed = [f"{name}={values[0]}" for name, values in choices.items() if name != group]
    own = [f"{group}={value}" for value in choices.get(group, [])]
    return {choice: [*fixed, choice] for choice in own} or {"": fixed}


def _known_keys(choices: list[str]) -> list[str]:
    """Every key of the configuration composed with these choices, without them if one is wrong."""
    for overrides in (choices, []):
        GlobalHydra.instance().clear()
        try:
            with initialize_config_module("draftmesh.conf", version_base="1.3"):
                cfg = compose("config", overrides, return_hydra_config=True)
        except Exception:  # this choice is the mistake
            continue
        return _flatten(OmegaConf.to_container(cfg, resolve=False))
    return []


def _flatten(node: Any, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key, value in node.items():
        keys.append(f"{prefix}{key}")
        if isinstance(value, dict):
            keys += _flatten(value, f"{prefix}{key}.")
    return keys


def _hint(override: str) -> str:
    key, _, value = override.partition("=")
    return f'{key}="{value}"'
