"""Processes that join a run which another one owns: they need no run folder and stay quiet."""

import os
import re

from hydra import compose as hydra_compose
from hydra import initialize_config_module
from omegaconf import DictConfig, open_dict

from draftmesh.cli.flags import is_multirun
from draftmesh.registry import UserError


def joins_others(arguments: list[str]) -> bool:
    """Whether this is a rank above 0 of torchrun, or a machine above 0 (`parallel.node_rank`).

    Raises UserError for a multirun under torchrun.
    """
    torchrun = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "MASTER_ADDR" in os.environ
    if torchrun and is_multirun(arguments):
        raise UserError("-m: a multirun cannot run under torchrun; set parallel=<plan> instead")
    rank = int(os.environ.get("RANK", "0")) if torchrun else 0
    return rank > 0 or any(re.fullmatch(r"parallel\.node_rank=0*[1-9]\d*", a) for a in arguments)


def compose(arguments: list[str]) -> tuple[DictConfig, None, dict[str, str | None]]:
    """What `execute` takes, from the command line that the owner of the run got too."""
    overrides = [argument for argument in arguments if not argument.startswith("-")]
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        cfg = hydra_compose("config", overrides, return_hydra_config=True)
    choices = dict(cfg.hydra.runtime.choices)
    with open_dict(cfg):
        del cfg["hydra"]
    return cfg, None, choices
