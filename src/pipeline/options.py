"""The options that belong to the run and not to one of its stages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from draftmesh.registry import GROUPS, UserError
from draftmesh.registry.config import merge_config

SEEDS = 2**63


@dataclass(frozen=True)
class RunOptions:
    """See conf/config.yaml."""

    prompt: str | None = None
    max_new_tokens: int = 64
    stop: list[str] = field(default_factory=list)
    seed: int = 0
    batch_size: int = 1
    threads: int | None = None
    plugins: list[str] = field(default_factory=list)
    debug: bool = False

    def __post_init__(self) -> None:
        """Raises UserError for a value outside its range."""
        for option in ("max_new_tokens", "batch_size", "threads"):
            value = getattr(self, option)
            if value is not None and value < 1:
                raise UserError(f"{option}={value}: must be at least 1")
        if not 0 <= self.seed < SEEDS:
            raise UserError(f"seed={self.seed}: must be from 0 to 2**63 - 1")
        if "" in self.stop:
            raise UserError("stop: an empty string would end every completion at once; remove it")
        if self.prompt is not None and not self.prompt.strip():
            raise UserError("prompt: is empty; give a text, or null for the prompts of `data`")


def run_options(cfg: Mapping[str, Any]) -> RunOptions:
    """The run's own options. Raises UserError for an unknown key, a wrong type or value."""
    own = {key: value for key, value in cfg.items() if key not in GROUPS}
    options: RunOptions = merge_config(RunOptions, own, "")
    return options
