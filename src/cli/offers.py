"""Which config options exist, and which package provides each."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from draftmesh.registry import GROUPS
from draftmesh.registry.discovery import config_packages

ALL_GROUPS = (*GROUPS, "experiment")
OURS = ("draftmesh.conf", "draftmesh")


def options(group: str) -> list[str]:
    """Names of a group's options, ours first, then those of installed plugins."""
    return list(_providers(group))


def hidden() -> list[str]:
    """One line for each plugin's option that another package's option of that name hides."""
    return [
        f"{group}/{name}.yaml of {later} is hidden by {first}'s"
        for group in ALL_GROUPS
        for name, (first, *others) in _providers(group).items()
        for later in others
    ]


def _providers(group: str) -> dict[str, list[str]]:
    """Option -> its providers, the one that counts first."""
    found: dict[str, list[str]] = {}
    for package, origin in (OURS, *config_packages()):
        for name in _yaml_names(package, group):
            found.setdefault(name, []).append(origin)
    return found


def _yaml_names(package: str, group: str) -> list[str]:
    try:
        folder: Traversable = files(package) / group
        names = [item.name for item in folder.iterdir() if item.name.endswith(".yaml")]
    except (ImportError, OSError):  # a broken plugin, or a group that it does not extend
        return []
    return sorted(name.removesuffix(".yaml") for name in names)
