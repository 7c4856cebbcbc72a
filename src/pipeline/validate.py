"""Mistakes found before anything heavy is loaded."""

from collections.abc import Mapping
from typing import Any

from draftmesh.pipeline.options import run_options
from draftmesh.registry import GROUPS, UserError, build_config, get
from draftmesh.registry.kinds import SUB_KINDS
from draftmesh.stages.parallel.plan import Plan

COUNTS = ("k", "nodes", "top_k", "exit_layer")
"""Options of drafts that count something and start at 1, where a draft has them."""

SHAPES = {"chain": ("ratio", "block"), "static": ("ratio",), "dynamic": ()}
"""draft.shape -> verifiers other than `match` and `typical` that are unbiased for it."""


def check_options(cfg: Mapping[str, Any]) -> None:
    """Raises UserError, naming the option to change, for what cannot work."""
    run_options(cfg)
    configs = {kind: _config(kind, cfg) for kind in GROUPS}
    _check_draft(configs["draft"])
    _check_verifier(configs["draft"], configs["verifier"])
    plan: Plan = get("parallel", configs["parallel"].name)(configs["parallel"]).plan
    _check_plan(plan, configs["ffn"])


def _config(kind: str, cfg: Mapping[str, Any]) -> Any:
    """The stage's Config; None for `verifier=auto`, which is chosen when the draft is known."""
    node = cfg.get(kind)
    if not isinstance(node, Mapping) or not isinstance(node.get("name"), str):
        raise UserError(f"{kind}: one option of the group is needed, for example {kind}=<name>")
    if kind == "verifier" and node["name"] == "auto":
        return None
    cls = get(kind, node["name"])
    return build_config(cls, node)


def _check_draft(draft: Any) -> None:
    for option in COUNTS:
        value = getattr(draft, option, None)
        if isinstance(value, int) and value < 1:
            hint = "; draft=none decodes without a draft" if option == "k" else ""
            raise UserError(f"draft.{option}={value}: must be at least 1{hint}")


def _check_verifier(draft: Any, verifier: Any) -> None:
    if verifier is None or verifier.name not in ("ratio", "block"):
        return
    shape = getattr(draft, "shape", "chain")
    if verifier.name not in SHAPES.get(shape, (verifier.name,)):
        raise UserError(
            f"verifier={verifier.name} is biased for draft.shape={shape}: use verifier=match, "
            "which is lossless for every draft, or another draft.shape"
        )


def _check_plan(plan: Plan, ffn: Any) -> None:
    for kind in SUB_KINDS:
        name = getattr(plan, kind)
        if name != "auto":
            get(kind, name)
    if ffn.name == "dense" and plan.ep > 1:
        raise UserError(f"parallel.ep={plan.ep}: ffn=dense has no experts to split; use ffn=moe")
