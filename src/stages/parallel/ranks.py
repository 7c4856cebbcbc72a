"""The Ranks contract: alone (Solo) and over torch.distributed (Mesh)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.stages.parallel.group import Group
from draftmesh.stages.parallel.plan import Plan
from draftmesh.stages.parallel.traffic import CONTROL, Traffic

READY_TIMEOUT = timedelta(minutes=30)


class Mesh:
    """This process's place in the mesh and the agreements it needs (contract: Ranks).

    Groups: `tp_group` (ranks that hold the same sequences), `ep_group` (ranks among which whole
    experts are split), `etp_group` (ranks among which one expert's inner width is split),
    `all_group`. All count into one `traffic`.
    """

    def __init__(
        self,
        plan: Plan,
        rank: int,
        groups: dict[str, Group],
        traffic: Traffic,
        patient: dist.ProcessGroup | None = None,
    ) -> None:
        self.plan = plan
        self._patient = patient
        self.traffic = traffic
        self.rank, self.world = rank, plan.world
        self.dp_rank, self.tp_rank = divmod(rank, plan.tp)
        self.dp, self.tp = plan.dp, plan.tp
        self.ep_rank, self.etp_rank = divmod(rank, plan.etp)
        self.ep, self.etp = plan.ep, plan.etp
        self.tp_group, self.ep_group = groups["tp"], groups["ep"]
        self.etp_group, self.all_group = groups["etp"], groups["all"]

    def decide(self, *ids: Tensor) -> tuple[Tensor, ...]:
        """The tensor-parallel group's first rank decides: broadcast int64 or bool tensors."""
        if self.tp == 1:
            return ids
        packed = torch.cat([x.reshape(-1).to(torch.int64) for x in ids])
        parts = self.tp_group.broadcast(packed, CONTROL).split([x.numel() for x in ids])
        return tuple(p.view(x.shape).to(x.dtype) for p, x in zip(parts, ids, strict=True))

    def agree(self, *values: int) -> tuple[int, ...]:
        """The maximum of each value over all ranks that share collectives in a forward."""
        if self.world == 1:
            return values
        agreed = self.all_group.all_reduce(torch.tensor(values), CONTROL, dist.ReduceOp.MAX)
        return tuple(agreed.tolist())

    def gather(self, item: Any) -> list[Any] | None:
        """Rank 0 gets one item per data-parallel group (picklable), in order; others get None."""
        items = self.gather_ranks(item)
        return None if items is None else items[:: self.tp]

    def gather_ranks(self, item: Any) -> list[Any] | None:
        """Rank 0 gets one item of every rank, in order; others get None."""
        if self.world == 1:
            return [item]
        items: list[Any] | None = [None] * self.world if self.rank == 0 else None
        dist.gather_object(item, items, dst=0)
        return items

    def share(self, item: Any) -> Any:
        """Rank 0's item (picklable), on every rank."""
        items = [item]
        if self.world > 1:
            dist.broadcast_object_list(items, src=0)
        return items[0]

    def own(self, items: Sequence[Any]) -> list[Any]:
        """The items (prompts) that this rank's data-parallel group owns: every dp-th one."""
        return list(items[self.dp_rank :: self.dp])

    def restore(self, gathered: Sequence[Sequence[Any]]) -> list[Any]:
        """The inverse of `own`: per-group lists, in group order, back into the original order."""
        result: list[Any] = [None] * sum(len(part) for part in gathered)
        for group, part in enumerate(gathered):
            result[group :: self.dp] = part
        return result

    def ready(self) -> None:
        """Wait, for up to half an hour, until every rank calls this (after loading a model, say).

        Other collectives give up after `parallel.timeout_s`, too soon for a slow disk.
        """
        if self.world > 1:
            dist.barrier(group=self._patient)


class Solo(Mesh):
    """One process, world size 1: every method is the identity."""

    def __init__(self) -> None:
        traffic = Traffic()
        alone = Group.alone(traffic=traffic)
        groups = dict.fromkeys(("tp", "ep", "etp", "all"), alone)
        super().__init__(Plan(), 0, groups, traffic)


def connect(plan: Plan, device: str = "cpu") -> Mesh:
    """Join the run's process group (environment RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, as a
    launcher sets them) and form the plan's groups. World size 1 needs no environment.

    Collectives that wait longer than `plan.timeout_s` fail, so a hang becomes an error.
    """
    if plan.world == 1:
        return Solo()
    if not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
        dist.init_process_group(backend, timeout=timedelta(seconds=plan.timeout_s))
    if dist.get_world_size() != plan.world:
        raise UserError(
            f"parallel: the plan {plan.name} has {plan.world} ranks, but "
            f"{dist.get_world_size()} were started: change parallel.tp or parallel.ep"
        )
    return form(plan)


def form(plan: Plan) -> Mesh:
    """The plan's groups over an existing process group of the same size; called by every rank."""
    rank, traffic = dist.get_rank(), Traffic()
    world = list(range(plan.world))
    layout = {
        "all": [world],
        "tp": [world[i : i + plan.tp] for i in range(0, plan.world, plan.tp)],
        "etp": [world[i : i + plan.etp] for i in range(0, plan.world, plan.etp)],
        "ep": [world[i :: plan.etp] for i in range(plan.etp)],
    }
    made: dict[tuple[int, ...], Any] = {tuple(world): dist.group.WORLD}
    groups: dict[str, Group] = {}
    for name, members in layout.items():
        for ranks in members:
            key = tuple(ranks)
            if len(key) > 1 and key not in made:
                made[key] = dist.new_group(ranks, timeout=timedelta(seconds=plan.timeout_s))
            if rank in key:
                groups[name] = Group(key, key.index(rank), traffic, made.get(key))
    patient = dist.new_group(backend="gloo", timeout=READY_TIMEOUT)
    return Mesh(plan, rank, groups, traffic, patient)


def disconnect() -> None:
    """Leave the process group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()
