"""Chats that the target writes itself, for `task=train`."""

from dataclasses import dataclass, field
from pathlib import Path

from draftmesh.registry import register
from draftmesh.registry.contracts.stage import Prompt
from draftmesh.registry.errors import UserError
from draftmesh.stages.data.file import read_prompts
from draftmesh.stages.data.selection import Selection


@register("data", "selfgen")
class SelfGen:
    """The target answers the prompts of a file, or writes the prompts as well (as Magpie does,
    arXiv 2406.08464)."""

    @dataclass(frozen=True)
    class Config:
        """path: prompts to answer; null: the target writes `count` of its own, of at most
        `prompt_tokens`, which begin with one of `starts` in turn. limit: the first prompts of the
        file only. sampled: part of the answers that is drawn at `temperature`; the others are
        greedy. Answers have at most max_new_tokens.
        """

        name: str = "selfgen"
        path: str | None = None
        limit: int | None = None
        count: int = 1000
        prompt_tokens: int = 128
        starts: list[str] = field(default_factory=list)
        sampled: float = 0.3
        temperature: float = 0.8

        def __post_init__(self) -> None:
            """Raises UserError for values that mean nothing."""
            for name in ("count", "prompt_tokens"):
                if getattr(self, name) < 1:
                    raise UserError(f"data.{name}={getattr(self, name)}: must be at least 1")
            if not 0 <= self.sampled <= 1:
                raise UserError(f"data.sampled={self.sampled}: must be from 0 to 1")
            if self.temperature <= 0:
                raise UserError(f"data.temperature={self.temperature}: must be above 0")

    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> list[Prompt]:
        """The file's prompts; UserError without one, as only task=train lets the target write."""
        if not self.config.path:
            raise UserError(
                "data=selfgen is for task=train: choose data=demo, or data=jsonl data.path=<file>"
            )
        return read_prompts(Path(self.config.path).expanduser(), Selection(self.config.limit))
