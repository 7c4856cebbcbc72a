"""Processes that join a run which another one owns: they need no run folder and stay quiet."""

import os
import re

from hydra import compose as hydra_compose
from hydra import initialize_config_module
from omegaconf import DictConfig, open_dict

from draftmesh.registry import UserError


def joins_others(arguments: list[str]) -> bool:
    """Whether this is a rank above 0 of torchrun, or a machine above 0 (`parallel.node_rank`).

    Raises UserError, on every process of a run with several, for Hydra's flags: they change what is
    run in a way that followers, which have no Hydra application, cannot.
    """
    torchrun = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "MASTER_ADDR" in os.environ
    rank = int(os.environ.get("RANK", "0")) if torchrun else 0
    joins = rank > 0 or _any(r"parallel\.node_rank=0*[1-9]\d*", arguments)
    flag = next((argument for argument in arguments if argument.startswith("-")), None)
    if flag and (torchrun or joins or _any(r"parallel\.nnodes=(?!0*1$).*", arguments)):
        raise UserError(f"{flag}: no flags under torchrun or with parallel.nnodes; give options")
    return joins


def compose(arguments: list[str]) -> tuple[DictConfig, None, dict[str, str | None]]:
    """What `execute` takes, from the command line that the owner of the run got too."""
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        cfg = hydra_compose("config", arguments, return_hydra_config=True)
    choices = dict(cfg.hydra.runtime.choices)
    with open_dict(cfg):
        del cfg["hydra"]
    return cfg, None, choices


def _any(pattern: str, arguments: list[str]) -> bool:
    return any(re.fullmatch(pattern, argument) for argument in arguments)
