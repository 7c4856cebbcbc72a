"""What `--help` prints, without composing a configuration."""

from textwrap import fill

from draftmesh.cli.offers import ALL_GROUPS, options
from draftmesh.registry import KINDS, Entry, describe

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
    groups = [(group, ", ".join(options(group))) for group in ALL_GROUPS]
    plugins = [(kind, ", ".join(map(_label, describe(kind)))) for kind in KINDS]
    return TEXT.format(command=command, groups=_table(groups), plugins=_table(plugins))


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
