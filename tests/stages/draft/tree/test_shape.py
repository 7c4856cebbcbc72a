import pytest

from draftmesh.registry import UserError
from draftmesh.stages.draft.tree.options import TreeOptions
from draftmesh.stages.draft.tree.shape import NODES, TreeShape


def shape(**options):
    return TreeShape.of(TreeOptions(**options))


def test_a_chain_has_a_node_per_level():
    chain = shape(k=4)
    assert (chain.depth, chain.nodes, chain.work) == (4, 4, 3)
    assert chain.cut(2).nodes == 2


def test_a_static_tree_is_as_large_as_asked():
    assert shape(shape="static").nodes == NODES
    assert shape(shape="static", nodes=5).nodes == 5
    wide = shape(shape="static", widths=[3, 2])
    assert (wide.depth, wide.nodes, wide.work, wide.top_k) == (2, 9, 3, 3)
    assert wide.cut(1).nodes == 3
    assert wide.cut(9) is wide


def test_a_dynamic_tree_is_no_larger_than_its_candidates():
    tree = shape(shape="dynamic", k=5, nodes=20, top_k=4)
    assert (tree.depth, tree.nodes, tree.work) == (5, 20, 16)
    assert shape(shape="dynamic", k=2, nodes=50, top_k=3).nodes == 12
    assert shape(shape="dynamic", k=9, nodes=4).depth == 4
    assert tree.cut(2).nodes == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": "tree"}, r"draft\.shape=tree: must be one of chain, static, dynamic"),
        ({"children": "best"}, r"draft\.children=best: must be one of"),
        ({"shape": "static", "widths": [2], "paths": [[0]]}, r"exclude each other"),
        ({"widths": [2]}, r"draft\.widths: describes a static tree: set draft\.shape=static"),
        ({"shape": "dynamic", "paths": [[0]]}, r"draft\.paths: describes a static tree"),
        ({"shape": "dynamic", "children": "distinct"}, r"draft\.children=distinct: a dynamic tree"),
        ({"shape": "static", "widths": [1] * 6}, r"draft\.k=5: draft\.widths goes 6 deep"),
        ({"shape": "static", "widths": [3], "nodes": 2}, r"draft\.nodes=2: .* 3 nodes"),
    ],
)
def test_contradictions_name_the_option(options, message):
    with pytest.raises(UserError, match=message) as error:
        shape(**options)
    assert "\n" not in str(error.value)
