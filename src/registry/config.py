"""From a node of the composed configuration to a plugin's frozen Config."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from draftmesh.registry.errors import UserError
from draftmesh.registry.suggest import did_you_mean


def merge_config(schema: type[Any], node: Mapping[str, Any], prefix: str) -> Any:
    """An instance of the dataclass `schema` with the node's values.

    Raises UserError for an unknown key (with the nearest known one), a wrong type or a missing
    value; the message begins with the option, `<prefix><key>`, for example draft.k for "draft.".
    A field that is itself a dataclass is merged in the same way.
    """
    known = [field.name for field in fields(schema)]
    parts = {f.name: f.type for f in fields(schema) if is_dataclass(f.type)}
    for key in node:
        if key not in known:
            hint = did_you_mean(str(key), known, prefix)
            raise UserError(f"{prefix}{key}: no such option{hint}; options: {', '.join(known)}")
    nested = {key: _part(parts[key], node[key], f"{prefix}{key}") for key in parts if key in node}
    try:
        values = DictConfig(literal({k: v for k, v in node.items() if k not in nested}))
        merged = OmegaConf.merge(OmegaConf.structured(schema), values)
        whole: Any = OmegaConf.to_object(merged)
        return replace(whole, **nested)
    except MissingMandatoryValue as error:
        missing = next((k for k in known if OmegaConf.is_missing(merged, k)), error.full_key)
        raise UserError(f"{prefix}{missing}: a value is required") from error
    except OmegaConfBaseException as error:
        key = error.full_key or error.key
        reason = str(error.msg or error).strip().splitlines()[0]
        if "is not a ListConfig" in reason:
            reason = f"takes a list, for example {prefix}{key}=[{node.get(str(key))}]"
        raise UserError(f"{prefix}{key}: {reason}{_also(f'{prefix}{key}')}") from error


def _also(option: str) -> str:
    """What an option takes beyond its type, because it is replaced before a plugin sees it."""
    return "; takes a number, or auto" if option == "draft.k" else ""


def _part(schema: Any, node: Any, name: str) -> Any:
    if not isinstance(node, Mapping):
        raise UserError(f"{name}={node}: is a group of options; set {name}.<option>=<value>")
    return merge_config(schema, node, f"{name}.")


def literal(value: Any) -> Any:
    """The same value with its texts escaped, so that OmegaConf finds no interpolation in them."""
    if isinstance(value, str):
        return literal_text(value)
    if isinstance(value, Mapping):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [literal(item) for item in value]
    return value


def literal_text(text: str) -> str:
    """Escape "${", and double the backslashes right before it, as OmegaConf's grammar asks."""
    return double_backslashes_before(text, "${").replace("${", "\\${")


def double_backslashes_before(text: str, mark: str) -> str:
    """Double the backslashes that stand right before each `mark`."""
    *parts, last = text.split(mark)
    return (
        "".join(part + "\\" * (len(part) - len(part.rstrip("\\"))) + mark for part in parts) + last
    )
