import subprocess
import sys

import pytest

from draftmesh.registry import UserError, build
from draftmesh.stages.parallel.plan import Plan


@pytest.mark.parametrize(
    ("node", "world", "dp", "etp", "name"),
    [
        ({}, 1, 1, 1, "single"),
        ({"tp": 2}, 2, 1, 2, "tp2"),
        ({"tp": 4}, 4, 1, 4, "tp4"),
        ({"ep": 4}, 4, 4, 1, "ep4"),
        ({"ep": 3}, 3, 3, 1, "ep3"),
        ({"tp": 2, "ep": 2, "etp": 2}, 4, 2, 2, "ep2tp2"),
        ({"tp": 2, "ep": 4, "etp": 2}, 8, 4, 2, "ep4tp2"),
        ({"tp": 2, "ep": 4}, 4, 2, 1, "ep4tp2etp1"),
        ({"tp": 4, "ep": 2}, 4, 1, 2, "ep2tp4etp2"),
        ({"ep": 2, "etp": 2}, 4, 4, 2, "ep2etp2"),
    ],
)
def test_mesh_of_a_configuration(
    node: dict[str, int], world: int, dp: int, etp: int, name: str
) -> None:
    plan: Plan = build("parallel", {"name": "mesh", **node}).plan
    assert (plan.world, plan.dp, plan.etp) == (world, dp, etp)
    assert plan.world == plan.dp * plan.tp == plan.ep * plan.etp
    assert plan.name == name


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"tp": 0}, r"parallel\.tp=0: must be at least 1"),
        ({"ep": -1}, r"parallel\.ep=-1"),
        ({"tp": 2, "ep": 3}, r"parallel\.tp=2 does not divide the 3 ranks"),
        ({"tp": 4, "ep": 1, "etp": 1}, r"set parallel\.etp=4"),
        ({"ep": 2, "dispatch": "local"}, r"parallel\.dispatch=local.*dispatch=auto"),
        ({"ep": 2, "dispatch": "all_reduce"}, r"that is parallel\.tp=2"),
        ({"ep": 4, "nnodes": 3}, r"parallel\.nnodes=3 does not divide"),
        ({"ep": 4, "nnodes": 2}, r"parallel\.rdzv_endpoint"),
        ({"ep": 4, "nnodes": 2, "node_rank": 2}, r"parallel\.node_rank=2"),
        ({"ep": 2, "tp": 3}, r"without experts: change parallel\.ep$"),
        ({"ep": 2, "nnodes": 2, "rdzv_endpoint": "host"}, r"parallel\.rdzv_endpoint=host: .*port"),
        ({"ep": 2, "nnodes": 2, "rdzv_endpoint": "host:x"}, r"parallel\.rdzv_endpoint=host:x"),
        ({"ep": 2, "nnodes": 2, "rdzv_endpoint": "a/b:80"}, r"parallel\.rdzv_endpoint=a/b:80"),
        ({"ep": 2, "timeout_s": 0}, r"parallel\.timeout_s"),
        ({"dispach": "local"}, r"parallel\.dispach.*did you mean parallel\.dispatch"),
    ],
)
def test_impossible_meshes_name_the_option(node: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build("parallel", {"name": "mesh", **node})


@pytest.mark.parametrize("endpoint", ["node-0.local:29500", "10.0.0.1:80", "[::1]:29500"])
def test_endpoints_of_several_machines(endpoint: str) -> None:
    assert Plan(ep=2, nnodes=2, rdzv_endpoint=endpoint).rdzv_endpoint == endpoint


def test_planning_needs_no_torch() -> None:
    code = "import sys, draftmesh.stages.parallel.plan; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
