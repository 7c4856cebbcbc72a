import pytest
from harness import tiny

from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.task.verifycost import REPEATS, verify_cost


class Recording(HFTarget):
    """Remembers the forwards it was asked for."""

    def forward(self, inputs, cache, *, parents=None, **options):
        self.seen.append((inputs.shape[1], None if parents is None else parents[0].tolist()))
        return super().forward(inputs, cache, parents=parents, **options)


@pytest.mark.parametrize("prefix", [4, 30])
def test_trees_and_single_tokens_are_measured_in_turn(prefix):
    target = tiny("llama", Recording).target
    target.seen = []
    costs = verify_cost(target, [2, 5, 16], prefix)
    assert set(costs) == {2, 5, 16}
    assert all(cost > 0 for cost in costs.values())
    assert target.seen.pop(0)[0] == prefix
    assert [size for size, _ in target.seen] == [1, 2, 5, 16] * REPEATS
    assert target.seen[0][1] is None
    assert target.seen[2][1] == [-1, 0, 0, 1, 1]


def test_the_context_bounds_the_sizes():
    target = tiny("llama", Recording, context=32).target
    target.seen = []
    assert set(verify_cost(target, [16], 16)) == {16}
