"""What `--help` prints, without composing a configuration."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from textwrap import fill

from draftmesh.registry import GROUPS, KINDS, Entry, describe
from draftmesh.registry.discovery import config_packages

TEXT = """\
DraftMesh: which draft strategy and which parallel plan serve a model fastest, losslessly?

Usage: {command} [group=option ...] [option=value ...]

Examples
  {command}                                      the default model and draft, demo prompts
  {command} prompt="Why is the sky blue?" draft=none max_new_tokens=100
  {command} model=hf model.path=./my-model draft=self sampling=nucleus
  {command} -m draft=none,ngram parallel=single,tp2    every combination, one after another
  {command} task=bench draft=ngram draft.k=7 verifier=match

Groups (group=option)
{groups}

Plugins ({command} task=list says what each does)
{plugins}

Options (option=value)
  prompt, max_new_tokens, stop, seed, batch_size, threads, plugins, debug
  <group>.<option>, for example draft.k=7; hydra.run.dir=<run folder>

Flags
  --help        this text
  --cfg job     the configuration, not run; lists every option
  -m            multirun: every combination of the comma-separated values
  --hydra-help  Hydra's own flags

Exit codes: 0, 1 (failed), 2 (a mistake in the command line or the input), 130 (interrupted)
"""


def help_text(command: str) -> str:
    """Groups with their options, plugins with their origins, and example commands."""
    groups = [(group, ", ".join(options(group))) for group in (*GROUPS, "experiment")]
    plugins = [(kind, ", ".join(map(_label, describe(kind)))) for kind in KINDS]
    return TEXT.format(command=command, groups=_table(groups), plugins=_table(plugins))


def options(group: str) -> list[str]:
    """Names of a config group's YAML files, ours first, then those of installed plugins."""
    found: dict[str, None] = {}
    for package in ("draftmesh.conf", *(package for package, _ in config_packages())):
        found.update(dict.fromkeys(_yaml_names(package, group)))
    return list(found)


def _yaml_names(package: str, group: str) -> list[str]:
    try:
        folder: Traversable = files(package) / group
        names = [item.name for item in folder.iterdir() if item.name.endswith(".yaml")]
    except (ImportError, OSError):  # a broken plugin, or a group that it does not extend
        return []
    return sorted(name.removesuffix(".yaml") for name in names)


def _label(entry: Entry) -> str:
    return entry.name if entry.origin == "built-in" else f"{entry.name} ({entry.origin})"


def _table(rows: list[tuple[str, str]]) -> str:
    shown = [(key, value) for key, value in rows if value]
    width = max(len(key) for key, _ in shown)
    indent = " " * (width + 4)
    return "\n".join(
        fill(value, 100, initial_indent=f"  {key:<{width}}  ", subsequent_indent=indent)
        for key, value in shown
    )
