"""Which kinds of stage exist, the contract of each, who provides them.

@register("draft", "mine")
class Mine:
    @dataclass(frozen=True)
    class Config:
        name: str = "mine"
        k: int = 5

    def __init__(self, config: Config, context: DraftContext) -> None: ...
"""

from collections.abc import Mapping
from typing import Any

from draftmesh.registry.config import merge_config
from draftmesh.registry.entry import Entry
from draftmesh.registry.errors import UserError
from draftmesh.registry.kinds import GROUPS, KINDS, SUB_KINDS, option
from draftmesh.registry.modules import load_plugins
from draftmesh.registry.registry import Registry

REGISTRY = Registry()

register = REGISTRY.register
get = REGISTRY.get
names = REGISTRY.names
describe = REGISTRY.describe
origin = REGISTRY.origin


def build_config(cls: type[Any], node: Mapping[str, Any]) -> Any:
    """The plugin's frozen Config with a node's values, for example cfg["draft"].

    Raises UserError naming the option (`draft.k`) for an unknown key, a wrong type or a missing
    value.
    """
    entry = REGISTRY.owner(cls)
    return merge_config(cls.Config, node, f"{option(entry.kind) if entry else cls.__name__}.")


def build(kind: str, node: Mapping[str, Any], *args: Any) -> Any:
    """The plugin that a node names, built from its Config and `args`."""
    name = node.get("name")
    if not isinstance(name, str):
        raise UserError(f"{option(kind)}.name: the name of a registered {kind} is required")
    cls = get(kind, name)
    return cls(build_config(cls, node), *args)


__all__ = [
    "GROUPS",
    "KINDS",
    "REGISTRY",
    "SUB_KINDS",
    "Entry",
    "Registry",
    "UserError",
    "build",
    "build_config",
    "describe",
    "get",
    "load_plugins",
    "names",
    "option",
    "origin",
    "register",
]
