import pytest

from draftmesh.registry import build
from draftmesh.stages.parallel.placement import Placement


@pytest.mark.parametrize(
    ("name", "owners"),
    [("contiguous", (0, 0, 0, 1, 1, 2, 2)), ("round_robin", (0, 1, 2, 0, 1, 2, 0))],
)
def test_uneven_placements(name: str, owners: tuple[int, ...]) -> None:
    placement: Placement = build("placement", {"name": name}).place(7, 3)
    assert placement.owners == owners
    assert placement.counts == [3, 2, 2]
    assert sorted(placement.order) == list(range(7))
    for expert, place in enumerate(placement.positions().tolist()):
        assert placement.order[place] == expert
    held = [placement.held_by(rank) for rank in range(3)]
    assert [e for experts in held for e in experts] == placement.order
