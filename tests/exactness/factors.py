"""What is multiplied in the exactness tests, and which products there are.

A draft, a shape, an architecture or a sampling group is added to the tests by adding a line here
and running `python tests/exactness/cover.py`, which writes the covering list anew.
"""

from dataclasses import dataclass
from typing import Any

from harness import SPECULATIVE

FACTORS: dict[str, tuple[str, ...]] = {
    "draft": (
        "none",
        "ngram",
        "exit",
        "skip",
        "small",
        "eagle1",
        "eagle3",
        "medusa",
        "cascade",
        "adaptive",
    ),
    "verifier": ("match", "ratio", "block"),
    "shape": ("chain", "static", "independent", "dynamic"),
    "batch": ("1", "5"),
    "sampling": ("greedy", "nucleus"),
    "arch": (*SPECULATIVE, "mamba"),
}

SHAPES: dict[str, dict[str, Any]] = {
    "chain": {"k": 3},
    "static": {"shape": "static", "k": 3, "nodes": 7, "top_k": 3},
    "independent": {"shape": "static", "k": 2, "widths": [3, 2], "children": "independent"},
    "dynamic": {"shape": "dynamic", "k": 3, "nodes": 7, "top_k": 3},
}
TREES = ("exit", "skip", "small", "eagle1", "eagle3", "medusa", "adaptive")
"""Drafts that can propose trees."""

SAMPLING: dict[str, dict[str, Any]] = {
    "greedy": {},
    "nucleus": {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.2},
}
OWN_LAYERS = ("exit", "skip", "cascade", "adaptive")
"""Drafts that stop at a layer of the target and resume there."""


@dataclass(frozen=True)
class Case:
    """One point of the product."""

    draft: str
    verifier: str
    shape: str
    batch: str
    sampling: str
    arch: str

    def __str__(self) -> str:
        return "-".join(vars(self).values())


def allowed(case: Case) -> bool:
    """Whether the combination works; the others have to be refused."""
    if case.shape != "chain" and case.draft not in TREES:
        return False
    if case.verifier == "ratio" and case.shape == "dynamic":
        return False
    if case.verifier == "block" and case.shape != "chain":
        return False
    if case.arch == "mamba" and case.draft != "none":
        return False
    return case.arch != "gpt2" or case.draft not in OWN_LAYERS
