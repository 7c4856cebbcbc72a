"""task=list: what is installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from draftmesh.registry import KINDS, Entry, UserError, describe, option, register
from draftmesh.registry.suggest import did_you_mean
from draftmesh.stages.task.records.console import standard_output

WIDE = 160
"""Columns where there is no terminal to fit."""


@register("task", "list")
class ListPlugins:
    """Every kind, plugin, origin and description. Imports no plugin and loads no model."""

    @dataclass(frozen=True)
    class Config:
        """kind: only this one."""

        name: str = "list"
        kind: str | None = None

    def __init__(self, config: Config) -> None:
        self.config = config

    def show(self, cfg: Mapping[str, Any], run_dir: Path) -> None:
        """Print the table. Raises UserError for an unknown kind."""
        kind = self.config.kind
        if kind is not None and kind not in KINDS:
            hint = did_you_mean(kind, KINDS)
            raise UserError(f"task.kind={kind}: no such kind{hint}; kinds: {', '.join(KINDS)}")
        standard_output(WIDE).print(plugin_table([kind] if kind else list(KINDS)))


def plugin_table(kinds: list[str]) -> Table:
    """One row per plugin of these kinds, in the registry's order."""
    table = Table(title="Plugins")
    for heading in ("chosen by", "name", "origin", "description"):
        table.add_column(heading, overflow="fold")
    for kind in kinds:
        for row, entry in enumerate(describe(kind)):
            table.add_row("" if row else f"{option(kind)}=", entry.name, *_about(entry))
        table.add_section()
    return table


def _about(entry: Entry) -> tuple[str, str]:
    if not entry.rivals:
        return entry.origin, entry.description
    origins = ", ".join(e.origin for e in (entry, *entry.rivals))
    return origins, "claimed by several distributions: choosing it is an error"
