"""From a plan's names to running experts."""

from typing import Any

from draftmesh.registry import UserError, build
from draftmesh.stages.ffn.dispatcher import Dispatcher
from draftmesh.stages.ffn.experts import check_ranks
from draftmesh.stages.ffn.moe import NAME, MoE
from draftmesh.stages.ffn.shard import shard_experts
from draftmesh.stages.ffn.sliced import InnerSplit, OwnSlice
from draftmesh.stages.ffn.upcycle import CopiedExperts
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.plan import Plan
from draftmesh.stages.parallel.ranks import Mesh


def assemble(model: Any, modules: list[Any], mesh: Mesh, shared: bool = False) -> MoE:
    """Split the experts over the mesh and run them through the plan's dispatcher and computation.

    `shared` keeps copies of an upcycled model in one storage. Called by every rank.
    """
    plan = mesh.plan
    sizes = {int(module.down_proj.shape[0]) for module in modules}
    if len(sizes) > 1:
        raise UserError(f"parallel: layers with {sorted(sizes)} experts are not supported")
    experts = sizes.pop()
    check_ranks(mesh.ep, experts)
    placement: Placement = build("placement", {"name": plan.placement}).place(experts, mesh.ep)
    held = placement.held_by(mesh.ep_rank)
    for module in modules:
        whole = len(held) == experts and mesh.etp == 1
        if not (whole and (shared or not isinstance(module, CopiedExperts))):
            shard_experts(module, held, mesh.etp_rank, mesh.etp)
    if any(not isinstance(module, CopiedExperts) for module in modules):
        model.set_experts_implementation(NAME)
    dispatcher = _dispatcher(plan, mesh, placement)
    return MoE(modules, dispatcher, _compute(plan, modules), placement, mesh)


def resolve_dispatch(plan: Plan) -> str:
    """The dispatcher that "auto" stands for."""
    if plan.dispatch != "auto":
        return plan.dispatch
    if plan.world == 1:
        return "local"
    return "all_reduce" if plan.dp == 1 else "all_to_all"


def _dispatcher(plan: Plan, mesh: Mesh, placement: Placement) -> Dispatcher:
    dispatcher: Dispatcher = build("dispatch", {"name": resolve_dispatch(plan)}, mesh, placement)
    if dispatcher.replicated:
        return dispatcher
    if mesh.etp > 1:
        held = len(placement.held_by(mesh.ep_rank))
        dispatcher = InnerSplit(dispatcher, mesh.etp_group, held)
    if mesh.tp > 1:
        dispatcher = OwnSlice(dispatcher, mesh.tp_group)
    return dispatcher


def _compute(plan: Plan, modules: list[Any]) -> Any:
    """The plan's computation. On CPUs a loop is as fast as grouped products, in every dtype."""
    name = plan.compute
    cuda = next(modules[0].parameters()).is_cuda
    if name == "auto":
        name = "grouped_mm" if cuda else "loop"
    compute = build("compute", {"name": name})
    reason = next((r for module in modules if (r := compute.supports(module))), None)
    if reason is None:
        return compute
    if plan.compute == "auto":
        return build("compute", {"name": "loop"})
    raise UserError(f"parallel.compute={name}: {reason}; use parallel.compute=loop")
