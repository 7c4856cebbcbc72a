"""Mistakes found before anything heavy is loaded."""

from collections.abc import Iterator, Mapping
from typing import Any

from draftmesh.pipeline.options import run_options
from draftmesh.registry import GROUPS, UserError, build_config, get
from draftmesh.registry.config import merge_config
from draftmesh.registry.kinds import SUB_KINDS
from draftmesh.stages.draft.adaptive.node import at_most, is_automatic
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.draft.tree.shape import TreeShape
from draftmesh.stages.ffn.declared import declared_experts
from draftmesh.stages.ffn.experts import check_copies, check_ranks
from draftmesh.stages.parallel.plan import Plan

COUNTS = ("k", "nodes", "top_k", "exit_layer")
"""Options of drafts that count something and start at 1, where a draft has them."""

SHAPES = {"chain": ("ratio", "block"), "static": ("ratio",), "dynamic": ()}
"""draft.shape -> verifiers other than `match` and `typical` that are unbiased for it."""


def check_options(cfg: Mapping[str, Any]) -> None:
    """Raises UserError, naming the option to change, for what cannot work."""
    run_options(cfg)
    configs = {kind: _config(kind, cfg) for kind in GROUPS}
    for prefix, draft in _drafts(configs["draft"]):
        _check_draft(prefix, draft)
        _check_verifier(prefix, draft, configs["verifier"])
    plan: Plan = get("parallel", configs["parallel"].name)(configs["parallel"]).plan
    _check_plan(plan, configs["ffn"])
    _check_experts(plan, configs["ffn"], configs["model"])
    _check_device(plan, configs["model"])
    _check_engine(cfg, configs, plan)
    _check_peers(configs, plan)


def _config(kind: str, cfg: Mapping[str, Any]) -> Any:
    """The stage's Config; None for `verifier=auto`, which is chosen when the draft is known."""
    node = cfg.get(kind)
    if not isinstance(node, Mapping) or not isinstance(node.get("name"), str):
        raise UserError(f"{kind}: one option of the group is needed, for example {kind}=<name>")
    if kind == "verifier" and node["name"] == "auto":
        return None
    cls = get(kind, node["name"])
    return build_config(cls, at_most(node) if kind == "draft" else node)


def _drafts(draft: Any) -> Iterator[tuple[str, Any]]:
    """The draft's Config, and those of the drafts inside it, with the options' prefixes."""
    yield "draft.", draft
    for option, node in getattr(draft, "drafts", {}).items():
        prefix = f"draft.{option}."
        yield prefix, merge_config(get("draft", node["name"]).Config, node, prefix)


def _check_draft(prefix: str, draft: Any) -> None:
    for option in COUNTS:
        value = getattr(draft, option, None)
        if isinstance(value, int) and value < 1:
            hint = "; draft=none decodes without a draft" if option == "k" else ""
            raise UserError(f"{prefix}{option}={value}: must be at least 1{hint}")
    if isinstance(draft, TreeOptions):
        TreeShape.of(draft)


def _check_verifier(prefix: str, draft: Any, verifier: Any) -> None:
    if verifier is None or verifier.name not in ("ratio", "block"):
        return
    shape = getattr(draft, "shape", "chain")
    if verifier.name not in SHAPES.get(shape, (verifier.name,)):
        raise UserError(
            f"verifier={verifier.name} is biased for {prefix}shape={shape}: use verifier=match, "
            "which is lossless for every draft, or another shape"
        )


def _check_engine(cfg: Mapping[str, Any], configs: Mapping[str, Any], plan: Plan) -> None:
    """Engines of others have their own drafts, verify in their own way and run on one rank."""
    name, draft, verifier = configs["engine"].name, configs["draft"].name, configs["verifier"]
    drafts = getattr(get("engine", name), "drafts", None)
    if drafts is None:
        return
    if configs["task"].name == "certify":
        raise UserError(f"engine={name}: task=certify looks into engine=native only")
    if is_automatic(cfg["draft"]):
        raise UserError(f"draft.k=auto: engine={name} cannot adapt it; give a number")
    if draft not in drafts:
        raise UserError(f"draft={draft}: engine={name} only drafts with {', '.join(drafts)}")
    if getattr(configs["draft"], "shape", "chain") != "chain":
        raise UserError(f"draft.shape: engine={name} only drafts chains")
    if verifier is not None:
        raise UserError(f"verifier={verifier.name}: engine={name} has its own; use verifier=auto")
    if plan.world > 1:
        raise UserError(f"engine={name} runs on one rank: use parallel=single")
    if draft != "none" and cfg["batch_size"] > 1:
        raise UserError(
            f"batch_size={cfg['batch_size']}: engine={name} drafts for one prompt at a time; set "
            "batch_size=1 or engine=native"
        )
    _check_sampling(name, configs["sampling"])


def _check_peers(configs: Mapping[str, Any], plan: Plan) -> None:
    """Engines that a task measures beside the configured one."""
    for peer in getattr(configs["task"], "peers", ()):
        if plan.world > 1:
            raise UserError(f"task.peers={peer}: peers run on one rank; use parallel=single")
        _check_sampling(peer, configs["sampling"])


def _check_sampling(engine: str, sampling: Any) -> None:
    check = getattr(get("engine", engine), "check_sampling", None)
    if check is not None:
        check(sampling)


def _check_plan(plan: Plan, ffn: Any) -> None:
    for kind in SUB_KINDS:
        name = getattr(plan, kind)
        if name != "auto":
            _check_stage(kind, name)
    if ffn.name == "dense" and plan.ep > 1:
        raise UserError(f"parallel.ep={plan.ep}: ffn=dense has no experts to split; use ffn=moe")


def _check_stage(kind: str, name: str) -> None:
    stage = get(kind, name)
    if kind == "dispatch" and not hasattr(stage, "replicated"):
        raise UserError(f"parallel.dispatch={name}: {stage.__name__} lacks replicated")


def _check_experts(plan: Plan, ffn: Any, model: Any) -> None:
    """As far as options tell; once a model is loaded, the ffn stage looks at its experts."""
    experts = declared_experts(model) if plan.ep > 1 else None
    if experts is None:
        return
    if experts > 1:
        check_ranks(plan.ep, experts)
    elif ffn.name in ("auto", "moe"):
        check_copies(plan.ep, ffn.experts)


def _check_device(plan: Plan, model: Any) -> None:
    """Each of several ranks takes the GPU of its own number on its machine."""
    if plan.world == 1:
        return
    device = getattr(model, "device", None) or ""
    if device.startswith("cuda:"):
        raise UserError(
            f"model.device={device}: {plan.world} ranks need a GPU each; use model.device=cuda"
        )
    if getattr(model, "device_map", None) is not None:
        raise UserError(
            f"model.device_map={model.device_map}: the plan splits the model over {plan.world} "
            "ranks; use model.device_map=null"
        )
