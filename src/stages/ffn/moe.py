"""The experts of a model, run through a dispatcher and an expert computation of ours."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from draftmesh.stages.ffn.dispatcher import Dispatcher
from draftmesh.stages.ffn.load import ExpertLoad
from draftmesh.stages.ffn.report import MoeReport
from draftmesh.stages.ffn.routing import RoutingContext
from draftmesh.stages.ffn.stopwatch import Stopwatch
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Mesh
from draftmesh.stages.parallel.traffic import EXPERTS

NAME = "draftmesh"
STATE = "draftmesh_experts"


class MoE:
    """All experts blocks of a model: how rows travel, what was routed where, how long it took.

    `context.set_valid` is called before each forward; `reset` after a warm-up; `report` at the end.
    """

    def __init__(
        self,
        modules: list[Any],
        dispatcher: Dispatcher,
        compute: Any,
        placement: Placement,
        mesh: Mesh,
    ) -> None:
        self.dispatcher, self.compute = dispatcher, compute
        self.placement, self.mesh = placement, mesh
        self.context = RoutingContext()
        device = next(modules[0].parameters()).device
        self.load = ExpertLoad(len(modules), placement.experts, device)
        self.clock = Stopwatch(device)
        for layer, module in enumerate(modules):
            setattr(module, STATE, Layer(self, layer))

    def run(self, layer: int, module: nn.Module, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        """x [N, H], ids and weights [N, k] -> [N, H]; rows that are not real come out zero."""
        real = self.context.rows(x)
        rows = x if real is None else x[real]
        if real is not None:
            ids, weights = ids[real], weights[real]
        self.load.routed(layer, ids)
        sent = self.dispatcher.predicted_bytes(
            ids, x.shape[-1] * x.element_size(), weights.element_size()
        )
        self.mesh.traffic.predict(EXPERTS, sent)
        with self.clock.measure("dispatch"):
            batch = self.dispatcher.dispatch(rows, ids, weights)
        with self.clock.measure("expert"):
            outputs = self.compute(module, batch.rows, batch.counts)
        with self.clock.measure("combine"):
            out = self.dispatcher.combine(outputs, batch)
        self.load.computed(batch.counts)
        return out if real is None else self.context.scatter(out, real, len(x))

    def reset(self) -> None:
        """Forget counts and times, after a warm-up."""
        self.load.reset()
        self.clock.reset()

    def report(self) -> MoeReport:
        """This rank's part of what happened since the last reset."""
        first = self.mesh.tp_rank == 0
        return MoeReport(
            load=self.load.counts.tolist() if first else None,
            hits=list(self.load.hits) if self.mesh.etp_rank == 0 else [0] * len(self.load.hits),
            dispatch_s=self.clock.seconds("dispatch"),
            expert_s=self.clock.seconds("expert"),
            combine_s=self.clock.seconds("combine"),
        )


@dataclass(frozen=True)
class Layer:
    """What an experts module needs to find its way: the model's MoE and its own layer number."""

    moe: MoE
    index: int


def experts_forward(
    module: nn.Module, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor
) -> Tensor:
    """The experts function registered with transformers."""
    state: Layer = getattr(module, STATE)
    return state.moe.run(state.index, module, hidden_states, top_k_index, top_k_weights)


ALL_EXPERTS_FUNCTIONS.register(NAME, experts_forward)
