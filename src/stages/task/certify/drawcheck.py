"""Goodness of fit as a check."""

from collections.abc import Callable, Sequence
from time import perf_counter

from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.certify.cells import CELLS
from draftmesh.stages.task.certify.draws import Drawing
from draftmesh.stages.task.certify.goodness import goodness
from draftmesh.stages.task.certify.part import Part, untested
from draftmesh.stages.task.certify.power import detectable, draws_needed

TITLE = "goodness of fit of the first two drafted tokens"
FEWEST = 256


class DrawCheck:
    """Draws after one forced prefix against the exact distribution, in the run's own dtype."""

    title = TITLE

    def __init__(
        self,
        pipeline: Pipeline,
        requests: Sequence[Request],
        *,
        distance: float,
        significance: float,
    ) -> None:
        self.pipeline, self.distance, self.significance = pipeline, distance, significance
        self.drawing = Drawing(pipeline)
        self.prefix = self.drawing.choose(requests)
        self.needed = draws_needed(distance, CELLS, significance)
        self.cost = self.needed * self.drawing.seconds_per_draw

    def run(self, seconds: float, late: Callable[[], bool]) -> Part:
        """As many draws as fit; fewer detect only larger differences."""
        begin = perf_counter()
        share = 1.0 if seconds >= self.cost else seconds / self.cost
        count = max(int(share * self.needed), FEWEST)
        reference = self.drawing.reference(self.prefix)
        draws = self.drawing.run(self.prefix, count, late)
        if self.pipeline.ranks.rank > 0:
            return Part("fit", TITLE, None, "done by rank 0")
        if self.prefix.tokens not in draws.loop:
            return Part("fit", TITLE, False, "the decode loop does not use the run's processors")
        found = goodness(draws, self.prefix, reference)
        notes = []
        if draws.asked < self.needed:
            seen = detectable(draws.asked, CELLS, self.significance)
            notes.append(
                f"{draws.asked:,} of {self.needed:,} draws (task.budget), which detect a total "
                f"variation of {seen:.2g} instead of {self.distance:g}"
            )
        if self.pipeline.main_draft.depth and not draws.counters.accepted:
            notes.append(untested(draws.counters))
        dtype = self.pipeline.target.dtype
        return Part(
            "fit",
            TITLE,
            found.holds(self.significance, dtype),
            found.summary(self.significance, dtype),
            tuple(notes),
            {
                **found.record(self.significance),
                "prefix": list(self.prefix.tokens),
                "drafted": draws.counters.drafted,
                "accepted": draws.counters.accepted,
            },
            {"certified_p_value": found.p_value, "certified_draws": draws.asked},
            perf_counter() - begin,
        )
