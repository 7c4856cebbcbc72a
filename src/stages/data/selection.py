"""How much of a prompt file is used."""

from dataclasses import dataclass, replace

from draftmesh.registry.contracts.stage import Prompt
from draftmesh.registry.errors import UserError


@dataclass(frozen=True)
class Selection:
    """`limit` prompts at most (None is all); `turns` is first (each prompt's first) or all."""

    limit: int | None = None
    turns: str = "first"

    def check(self) -> None:
        """Raise UserError for values that mean nothing."""
        if self.limit is not None and self.limit < 1:
            raise UserError(f"data.limit={self.limit} must be above 0, or null for all prompts")
        if self.turns not in ("first", "all"):
            raise UserError(f"data.turns={self.turns} is not one of first, all")

    def apply(self, prompt: Prompt) -> Prompt:
        """The prompt with the turns that are wanted."""
        return replace(prompt, turns=prompt.turns[:1]) if self.turns == "first" else prompt
