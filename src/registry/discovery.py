"""Plugins of installed distributions (entry points `draftmesh.<kind>` and `draftmesh.configs`)."""

import os
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, distributions

from draftmesh.registry.entry import Entry
from draftmesh.registry.kinds import KINDS

PREFIX = "draftmesh."
CONFIGS = "draftmesh.configs"
SWITCH = "DRAFTMESH_PLUGINS"


def allowed(distribution: str) -> bool:
    """Whether DRAFTMESH_PLUGINS (unset: all; `none`; a comma-separated list) admits it."""
    switch = os.environ.get(SWITCH)
    if switch is None:
        return True
    return _normal(distribution) in {_normal(name) for name in switch.split(",")}


def discover() -> list[Entry]:
    """Entries of installed plugins, sorted by kind, name and distribution. Imports no plugin."""
    found = [
        Entry(point.group.removeprefix(PREFIX), point.name, point, _origin(point), _summary(point))
        for point in _points()
        if point.group.removeprefix(PREFIX) in KINDS
    ]
    return sorted(found, key=lambda entry: (entry.kind, entry.name, entry.origin))


def config_packages() -> list[tuple[str, str]]:
    """(package that holds YAML, distribution and version) of each installed plugin."""
    return sorted((p.value, _origin(p)) for p in _points() if p.group == CONFIGS)


@lru_cache(maxsize=1)
def _points() -> tuple[EntryPoint, ...]:
    by_name: dict[str, Distribution] = {}
    for dist in distributions():
        if PREFIX in (dist.read_text("entry_points.txt") or ""):
            # the first on sys.path is the one that would be imported
            by_name.setdefault(_normal(dist.name), dist)
    return tuple(
        point
        for name, dist in by_name.items()
        if allowed(name)
        for point in dist.entry_points
        if point.group.startswith(PREFIX)
    )


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unnamed distribution"


def _summary(point: EntryPoint) -> str:
    dist: Distribution | None = point.dist
    return (dist.metadata["Summary"] or "") if dist else ""


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(".", "-")
