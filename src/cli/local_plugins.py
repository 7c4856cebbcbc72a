"""`plugins=[my.module]`: what the user's modules register can be chosen without any YAML."""

from dataclasses import fields, is_dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from omegaconf import OmegaConf

from draftmesh.registry import GROUPS, Entry, UserError, describe, load_plugins


def publish(arguments: list[str]) -> None:
    """Import the modules named by `plugins=`, and offer each class they register as an option.

    The option's values are the defaults of the class's Config. Raises UserError if a module fails.
    """
    modules = [m for argument in arguments for m in _modules(argument)]
    load_plugins(modules)
    for kind in GROUPS if modules else ():
        for entry in describe(kind):
            if isinstance(entry.target, type) and entry.origin != "built-in":
                node = _defaults(_schema(entry)) | {"name": entry.name}
                ConfigStore.instance().store(name=entry.name, group=kind, node=node)


def _modules(argument: str) -> list[str]:
    if not argument.startswith("plugins="):
        return []
    try:
        value = OverridesParser.create().parse_override(argument).value()
    except OverrideParseException:
        return []  # Hydra reports it
    if not isinstance(value, list):
        raise UserError(f"{argument}: a list is needed: plugins=[{value}]")
    return [str(module) for module in value]


def _schema(entry: Entry) -> type[Any]:
    schema = getattr(entry.target, "Config", None)
    known = [f.name for f in fields(schema)] if is_dataclass(schema) else []
    if isinstance(schema, type) and "name" in known:
        return schema
    raise UserError(
        f"plugins: {entry.kind} '{entry.name}' ({entry.address}) needs a frozen dataclass Config "
        f'inside the class, with the field name: str = "{entry.name}"'
    )


def _defaults(schema: type[Any]) -> dict[str, Any]:
    config = OmegaConf.structured(schema)
    names = [field.name for field in fields(schema)]
    return {n: "???" if OmegaConf.is_missing(config, n) else _plain(config[n]) for n in names}


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
