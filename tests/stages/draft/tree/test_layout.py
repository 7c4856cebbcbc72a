import pytest

from draftmesh.registry import UserError
from draftmesh.stages.draft.tree.layout import Layout, from_paths, from_widths, likeliest
from draftmesh.stages.draft.tree.levels import levels_of


def test_widths_give_every_node_as_many_children():
    layout = Layout.of(from_widths([2, 1, 3]))
    assert layout.parents == (-1, -1, 0, 1, 2, 2, 2, 3, 3, 3)
    assert layout.ranks == (0, 1, 0, 0, 0, 1, 2, 0, 1, 2)
    assert layout.levels == (range(2), range(2, 4), range(4, 10))
    assert layout.inner(0) == [0, 1]
    assert layout.inner(2) == []


def test_paths_are_sorted_into_levels():
    layout = Layout.of(from_paths([[0, 1], [1], [0], [0, 0, 2], [0, 0]]))
    assert layout.parents == (-1, -1, 0, 0, 2)
    assert layout.ranks == (0, 1, 0, 1, 2)
    assert layout.inner(0) == [0]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([[0], [1, 0]], r"draft\.paths: \[1, 0\] hangs below \[1\]"),
        ([[0], []], r"draft\.paths: \[\] needs"),
        ([[0], [-1]], r"draft\.paths: \[-1\] needs"),
        ([[0], [0]], r"draft\.paths: a path is listed twice"),
    ],
)
def test_paths_that_make_no_tree(paths, message):
    with pytest.raises(UserError, match=message):
        from_paths(paths)


@pytest.mark.parametrize("widths", [[2, 0], [40, 40], [100] * 20])
def test_impossible_widths(widths):
    with pytest.raises(UserError, match=r"draft\.widths"):
        from_widths(widths)


def test_cut_keeps_the_upper_levels():
    layout = Layout.of(from_widths([2, 2, 2])).top(2)
    assert layout == Layout.of(from_widths([2, 2]))
    assert layout.inner(1) == []


def test_the_likeliest_tree_is_connected_and_favours_first_children():
    paths = likeliest(16, 5, 4)
    assert len(set(paths)) == 16
    assert all(path[:-1] in {(), *paths} for path in paths)
    assert all((*path[:-1], path[-1] - 1) in paths for path in paths if path[-1] > 0)
    assert max(map(len, paths)) <= 5
    assert max(map(max, paths)) <= 3
    depth = {first: max(len(p) for p in paths if p[0] == first) for first in (0, 1)}
    assert depth[0] > depth[1]


def test_a_small_space_is_filled():
    assert len(likeliest(1000, 2, 3)) == 3 + 9


def test_levels_say_what_to_run():
    first, second, last = levels_of(Layout.of(from_paths([[0], [1], [0, 0], [0, 1], [0, 1, 0]])))
    assert (first.inner, first.run, first.run_parents) == ([0], [0], [-1])
    assert (second.above, second.inner, second.run, second.run_parents) == (
        [0, 0],
        [1],
        [0, 3],
        [-1, 0],
    )
    assert (last.parents, last.above, last.inner, last.ran_before) == ([3], [0], [], 2)
