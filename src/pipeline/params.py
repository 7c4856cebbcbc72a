"""The few parameters and the name by which runs are told apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from draftmesh.registry.contracts.tracking import Scalar

_OPTIONS = {
    "draft.k": 0,
    "draft.shape": None,
    "draft.nodes": 0,
    "draft.top_k": 0,
    "model.dtype": None,
    "model.device": None,
    "parallel.dispatch": None,
    "parallel.placement": None,
    "sampling.temperature": 0,
    "sampling.top_k": 0,
    "sampling.top_p": 1,
    "batch_size": 1,
    "max_new_tokens": 0,
    "seed": 0,
}
"""Options worth a column, and what stands for one that the chosen plugin does not have."""

_KINDS = ("task", "draft", "verifier", "ffn", "engine", "data")


def run_params(
    cfg: Mapping[str, Any], choices: Mapping[str, str], mesh: Mapping[str, int]
) -> dict[str, Scalar]:
    """About 25 flat parameters that tell runs apart; the whole configuration is an artifact.

    `choices` are Hydra's {group: option}, which name a preset where the plugin's name would not;
    `mesh` is {"world_size": ..., "dp": ..., "tp": ..., "ep": ..., "etp": ...}.
    """
    params: dict[str, Scalar] = {"model": model_label(cfg["model"])}
    params |= {kind: str(cfg[kind]["name"]) for kind in _KINDS}
    params |= {kind: choices.get(kind, str(cfg[kind]["name"])) for kind in ("parallel", "sampling")}
    params |= dict(mesh)
    for option, absent in _OPTIONS.items():
        value = _look_up(cfg, option)
        params[option] = absent if value is None else value
    return params


def run_name(cfg: Mapping[str, Any], choices: Mapping[str, str]) -> str:
    """A short name such as `eagle-k5_ep4_s0` or, with a tree, `eagle-k5-dynamic16_ep4_s0`; other
    tasks than `generate` come first."""
    parts = [_draft_label(cfg)]
    parts += [choices.get("parallel", str(cfg["parallel"]["name"])), f"s{cfg['seed']}"]
    engine = cfg["engine"]["name"]
    parts = parts if engine == "native" else [engine, *parts]
    task = cfg["task"]["name"]
    return "_".join(parts if task == "generate" else [task, *parts])


def _draft_label(cfg: Mapping[str, Any]) -> str:
    k, shape, nodes = (_look_up(cfg, f"draft.{option}") for option in ("k", "shape", "nodes"))
    parts = [str(cfg["draft"]["name"]), f"k{k}" if k else ""]
    parts.append(f"{shape}{nodes or ''}" if shape and shape != "chain" else "")
    return "-".join(filter(None, parts))


def model_label(node: Mapping[str, Any]) -> str:
    """The model's name; for a folder or a Hub id its last part."""
    path = node.get("path")
    return Path(str(path)).name if path else str(node["name"])


def _look_up(cfg: Mapping[str, Any], option: str) -> Scalar:
    """A value by dotted name; None if there is no such option."""
    node: Any = cfg
    for key in option.split("."):
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return node if isinstance(node, str | int | float | bool) else None
