"""The prompts that a first run answers."""

from dataclasses import dataclass
from pathlib import Path

from draftmesh.registry import register
from draftmesh.registry.contracts.stage import Prompt
from draftmesh.stages.data.file import read_prompts
from draftmesh.stages.data.selection import Selection


@register("data", "demo")
class Demo:
    """Eight varied prompts that come with DraftMesh."""

    @dataclass(frozen=True)
    class Config:
        """`path` puts a file of your own in their place, as data=jsonl does."""

        name: str = "demo"
        path: str | None = None
        limit: int | None = None
        turns: str = "first"

    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> list[Prompt]:
        """Read them. Raises UserError for a bad `path` or selection."""
        own = self.config.path
        path = Path(own).expanduser() if own else Path(__file__).with_name("demo.jsonl")
        return read_prompts(path, Selection(self.config.limit, self.config.turns))
