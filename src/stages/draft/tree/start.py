"""What a tree grows from."""

from dataclasses import dataclass

from torch import Tensor

from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.prefixes import Prefixes


@dataclass(frozen=True)
class Start:
    """The root of each row's tree: the absolute position [B] of the first tokens to propose, the
    budget [B] (the longest path), and what choosing tokens takes."""

    context: DraftContext
    chance: Chance
    prefixes: Prefixes
    positions: Tensor
    budget: Tensor
