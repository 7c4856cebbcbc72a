"""Prompts of your own."""

from dataclasses import dataclass
from pathlib import Path

from draftmesh.registry import register
from draftmesh.registry.contracts.stage import Prompt
from draftmesh.registry.errors import UserError
from draftmesh.stages.data.file import read_prompts
from draftmesh.stages.data.selection import Selection


@register("data", "jsonl")
class Jsonl:
    """Prompts from a JSON-lines file (data.path): Spec-Bench turns, prompt or messages."""

    @dataclass(frozen=True)
    class Config:
        """`limit` takes the first prompts only; `turns` is first or all."""

        name: str = "jsonl"
        path: str | None = None
        limit: int | None = None
        turns: str = "first"

    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> list[Prompt]:
        """Read the file. Raises UserError for anything wrong with it (see `read_prompts`)."""
        if not self.config.path:
            raise UserError("data=jsonl needs data.path=<file>")
        selection = Selection(self.config.limit, self.config.turns)
        return read_prompts(Path(self.config.path).expanduser(), selection)
