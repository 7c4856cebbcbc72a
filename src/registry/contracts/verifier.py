"""Which draft tokens stand, and which token follows them."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution


@dataclass(frozen=True)
class Outcome:
    """The accepted path per sequence and the token after it.

    path [B, D] int64: node indices into the proposal from the root down, padded with -1;
    accepted [B] int64: how many of them; bonus [B] int64: the token chosen after the path
    (from the residual after a rejection, from the target's own distribution otherwise).
    """

    path: Tensor
    accepted: Tensor
    bonus: Tensor


class Verifier(Protocol):
    """Decides on a proposal from the target's distributions at the root and every node."""

    lossless: bool

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        """target holds N + 1 nodes (the root first); positions [B] is the absolute position of the
        first token to be chosen, that is the root's position plus one. Draws only through
        `chance`."""
        ...
