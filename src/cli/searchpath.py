"""Lets installed plugins add YAML options to the config groups."""

import sys

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from draftmesh.cli.offers import hidden
from draftmesh.registry.discovery import config_packages


class PluginConfigs(SearchPathPlugin):
    """Appends each `draftmesh.configs` entry point, so that it can add options but replace none."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append the packages; `--info searchpath` then names their distributions."""
        for package, origin in config_packages():
            search_path.append(f"plugin:{origin}", f"pkg://{package}")


def install() -> None:
    """Make Hydra use it, in this process, and say which options it cannot add."""
    for line in hidden() if config_packages() else ():
        print(f"draftmesh: {line}; rename the file", file=sys.stderr)
    Plugins.instance().register(PluginConfigs)
