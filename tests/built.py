"""Pipelines as a run builds them, from overrides as on the command line."""

from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from draftmesh.pipeline.build import BuiltPipeline, build_pipeline
from draftmesh.pipeline.validate import check_options
from draftmesh.stages.parallel.ranks import Solo

SMALL = (
    "model=tiny_llama",
    "draft=ngram",
    "model.layers=3",
    "model.hidden_size=32",
    "model.dtype=float64",
    "data.limit=3",
    "max_new_tokens=8",
    "batch_size=2",
    "tracking=none",
)


def composed(*overrides: str, defaults: tuple[str, ...] = SMALL) -> dict[str, Any]:
    """The configuration of a small run with some overrides."""
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        cfg: Any = OmegaConf.to_container(compose("config", [*defaults, *overrides]), resolve=True)
    return cfg


def built(
    folder: Path, *overrides: str, defaults: tuple[str, ...] = SMALL, **options: Any
) -> BuiltPipeline:
    """Its pipeline on one rank."""
    cfg = composed(*overrides, defaults=defaults)
    check_options(cfg)
    return build_pipeline(cfg, folder, Solo(), **options)
