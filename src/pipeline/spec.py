"""The run's configuration, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]


@dataclass(frozen=True)
class RunSpec:
    """One point in the product of choices. A node is a plugin's options, its `name` included."""

    model: Node
    draft: Node
    verifier: Node
    ffn: Node
    parallel: Node
    sampling: Node
    engine: Node
    task: Node
    data: Node
    tracking: Node
    prompt: str | None
    max_new_tokens: int
    stop: tuple[str, ...]
    seed: int
    batch_size: int
    threads: int | None
    plugins: tuple[str, ...]
    debug: bool

    @staticmethod
    def of(cfg: Mapping[str, Any]) -> "RunSpec":
        """From a composed, resolved and checked configuration."""
        values = {name: cfg[name] for name in RunSpec.__dataclass_fields__}
        values["stop"] = tuple(cfg["stop"])
        values["plugins"] = tuple(cfg["plugins"])
        return RunSpec(**values)
