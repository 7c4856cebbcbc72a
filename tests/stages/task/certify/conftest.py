"""Pipelines over tiny models, certified in this process."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from draftmesh.pipeline.build import BuiltPipeline, build_pipeline
from draftmesh.registry import REGISTRY, build
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.modules import load_plugins
from draftmesh.stages.parallel.ranks import Solo

TINY = (
    "task=certify",
    "model=tiny_llama",
    "model.vocab_size=40",
    "model.hidden_size=32",
    "model.intermediate_size=48",
    "model.std=0.15",
    "data.limit=3",
    "max_new_tokens=10",
    "tracking=none",
    "task.distance=0.12",
)

Cfg = dict[str, Any]


@pytest.fixture
def composed() -> Callable[..., Cfg]:
    """The configuration of a run on a tiny model."""
    return _composed


def _composed(*overrides: str) -> Cfg:
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        cfg = OmegaConf.to_container(compose("config", [*TINY, *overrides]), resolve=True)
    assert isinstance(cfg, dict)
    return {str(key): value for key, value in cfg.items()}


@pytest.fixture
def biased(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stages of certify_biased.py are registered."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    sys.modules.pop("certify_biased", None)
    with REGISTRY.isolated():
        load_plugins(["certify_biased"])
        yield


@pytest.fixture
def pipeline(tmp_path: Path) -> Callable[..., BuiltPipeline]:
    """pipeline("draft=self", ..., draft={"name": "liar"}): overrides, then changed nodes."""

    def make(*overrides: str, **nodes: Cfg) -> BuiltPipeline:
        cfg = _composed(*overrides)
        for kind, options in nodes.items():
            cfg[kind] = options if kind in ("verifier", "engine") else {**cfg[kind], **options}
        return build_pipeline(cfg, tmp_path, Solo())

    return make


@pytest.fixture
def certify(pipeline: Callable[..., BuiltPipeline]) -> Callable[..., RunResult]:
    """The result of task=certify."""

    def run(*overrides: str, **nodes: Cfg) -> RunResult:
        built = pipeline(*overrides, **nodes)
        result: RunResult = build("task", built.cfg["task"]).run(built)
        return result

    return run


@pytest.fixture
def part() -> Callable[[RunResult, str], Cfg]:
    """part(result, name): a part of the certificate."""
    return _part


def _part(result: RunResult, name: str) -> dict[str, Any]:
    parts = result.documents["certificate.json"]["parts"]
    found: dict[str, Any] = next(p for p in parts if p["name"] == name)
    return found
