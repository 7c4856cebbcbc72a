"""Runs many test cases in one set of ranks, since starting them takes seconds.

A case is a function in `ranked_cases` or `ranked_algebra`, called as case(plan, **arguments) on
every rank, over a process group that is already there.
"""

import functools
import sys
import traceback
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from draftmesh.pipeline.launch import launch
from draftmesh.stages.parallel.plan import Plan

HERE = str(Path(__file__).parent)


@dataclass(frozen=True)
class Case:
    """What to run: "module:function", a plan whose world is the number of ranks, arguments."""

    function: str
    plan: Plan
    arguments: dict[str, Any] = field(default_factory=dict)


def run(cases: dict[str, Case], ranks: Any) -> dict[str, list[Any]]:
    """In a rank: every case in order; rank 0 gets {case: [value of each rank]}."""
    results = {}
    for name, case in cases.items():
        module, function = case.function.split(":")
        try:
            value = getattr(import_module(module), function)(case.plan, **case.arguments)
        except Exception:
            value = "failed: " + traceback.format_exc()
        results[name] = ranks.gather_ranks(value)
    return results


def run_cases(world: int, cases: dict[str, Case]) -> dict[str, list[Any]]:
    """In the parent: start `world` ranks and run every case in them."""
    assert all(case.plan.world == world for case in cases.values())
    if HERE not in sys.path:
        sys.path.insert(0, HERE)
    plan = Plan(ep=world, timeout_s=60)
    return launch("ranked:run", cases, plan, say=lambda line: None)


@functools.cache
def results_of(world: int) -> dict[str, list[Any]]:
    """The results of all cases with so many ranks, computed once per test session."""
    import ranked_algebra
    import ranked_cases

    return run_cases(world, ranked_cases.CASES[world] | ranked_algebra.CASES.get(world, {}))
