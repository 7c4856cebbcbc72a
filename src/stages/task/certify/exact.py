"""The verifier's exact distribution: its own code, with every outcome of its draws listed."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from torch import Tensor

from draftmesh.registry.contracts.chance import Chance
from draftmesh.registry.contracts.draft import Proposal
from draftmesh.registry.contracts.sampling import Distribution
from draftmesh.registry.contracts.verifier import Outcome, Verifier
from draftmesh.stages.task.certify.drawing import draw
from draftmesh.stages.task.certify.part import Part
from draftmesh.stages.task.certify.shape import Shape
from draftmesh.stages.task.certify.smallworld import SmallWorld, vocabulary_for
from draftmesh.stages.verifier.exactness import (
    emitted_distribution,
    plain_distribution,
    total_variation,
)

NOISES = (0.0, 0.5, 2.0)
"""How far the draft is from the target: the same, close, far."""
TOLERANCE = 1e-6
MOST_PROPOSALS = 100
TITLE = "exact distribution of the verifier on a reduced vocabulary"


class Counting:
    """A verifier whose outcomes are counted by the number of accepted tokens."""

    def __init__(self, verifier: Verifier) -> None:
        self.verifier, self.lossless = verifier, verifier.lossless
        self.accepted: Counter[int] = Counter()

    def verify(
        self, proposal: Proposal, target: Distribution, chance: Chance, positions: Tensor
    ) -> Outcome:
        """See Verifier."""
        outcome = self.verifier.verify(proposal, target, chance, positions)
        self.accepted.update(outcome.accepted.tolist())
        return outcome


def exact_test(verifier: Verifier, sampling: Mapping[str, Any], shapes: Sequence[Shape]) -> Part:
    """Enumerate drafting and verifying in small worlds under the run's processors."""
    begin = perf_counter()
    vocabulary = vocabulary_for(sampling)
    most = int(math.log(MOST_PROPOSALS, vocabulary))
    worlds = [SmallWorld(sampling, vocabulary, seed, noise) for seed, noise in enumerate(NOISES)]
    records, distances = [], []
    try:
        for shape in shapes:
            small, counting = shape.reduced(most), Counting(verifier)
            found = [_distance(counting, world, small) for world in worlds]
            distances += found
            records.append(_record(shape, small, found, counting.accepted))
    except AssertionError as error:  # a key used twice: two draws that are not independent
        found_out = f"the verifier's draws are not independent ({error})"
        return Part("exact", TITLE, False, found_out)
    worst = max(distances)
    tested = " and ".join(str(record["shape"]) for record in records)
    return Part(
        "exact",
        TITLE,
        worst <= TOLERANCE,
        f"the verifier's exact total variation is {worst:.1g} for {tested}",
        data={
            "total_variation": worst,
            "tolerance": TOLERANCE,
            "vocabulary": vocabulary,
            "shapes": records,
        },
        metrics={"certified_total_variation": worst},
        seconds=perf_counter() - begin,
    )


def _record(
    shape: Shape, small: Shape, distances: Sequence[float], accepted: Counter[int]
) -> dict[str, Any]:
    return {
        "shape": str(small),
        "configured_shape": str(shape),
        "total_variation_by_draft_noise": dict(zip(map(str, NOISES), distances, strict=True)),
        "outcomes_by_accepted_tokens": {str(n): accepted[n] for n in sorted(accepted)},
    }


def _distance(verifier: Verifier, world: SmallWorld, shape: Shape) -> float:
    length = max(shape.depths, default=0) + 1
    emitted = emitted_distribution(
        verifier, lambda chance: draw(world, shape, chance), world.after, length, world.look
    )
    return total_variation(emitted, plain_distribution(world.after, length))
