"""Name -> stage class, for every kind."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from draftmesh.registry.builtins import BUILTINS
from draftmesh.registry.discovery import discover
from draftmesh.registry.entry import Entry, first_line
from draftmesh.registry.errors import UserError
from draftmesh.registry.kinds import KINDS, option
from draftmesh.registry.suggest import did_you_mean

T = TypeVar("T")


class Registry:
    """Built-ins first, then installed plugins by (name, distribution), then decorated classes.

    Nothing is imported before `get`; installed plugins are discovered at the first look-up.
    """

    def __init__(
        self,
        builtins: Mapping[str, Mapping[str, tuple[str, str]]] = BUILTINS,
        discover: Callable[[], list[Entry]] = discover,
    ) -> None:
        self._discover: Callable[[], list[Entry]] | None = discover
        self._entries: dict[tuple[str, str], Entry] = {}
        for kind, table in builtins.items():
            for name, (address, description) in table.items():
                self.add(Entry(kind, name, address, "built-in", description))

    def register(self, kind: str, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator: provide `name` under `kind`. A second class of that name is an error."""

        def decorate(cls: type[T]) -> type[T]:
            self.check_kind(kind)
            self._scan()
            entry = Entry(kind, name, cls, _where(cls), first_line(cls))
            known = self._entries.get((kind, name))
            if known and not known.same(entry):
                raise UserError(
                    f"{kind} '{name}' is registered twice: by {known.origin} ({known.address}) "
                    f"and {entry.origin} ({entry.address}); choose another name for one"
                )
            self.add(entry)
            return cls

        return decorate

    def add(self, entry: Entry) -> None:
        """Add an entry. The same class again is no change; another class becomes a rival."""
        self.check_kind(entry.kind)
        key = entry.kind, entry.name
        known = self._entries.get(key)
        if known is None:
            self._entries[key] = entry
        elif known.same(entry):
            if isinstance(entry.target, type):
                known.target = entry.target
        else:
            known.rivals = (*known.rivals, entry)

    def get(self, kind: str, name: str) -> type[Any]:
        """The class registered under a name. UserError if unknown, claimed twice or broken."""
        return self._find(kind, name).load()

    def names(self, kind: str) -> list[str]:
        """Every name under a kind, built-ins first. Imports nothing."""
        return [entry.name for entry in self.describe(kind)]

    def describe(self, kind: str) -> list[Entry]:
        """Every entry under a kind, built-ins first. Imports nothing."""
        self.check_kind(kind)
        self._scan()
        return [entry for (k, _), entry in self._entries.items() if k == kind]

    def origin(self, kind: str, name: str) -> str:
        """Who provides a name: "built-in", "<distribution> <version>" or "<file>:<line>"."""
        return self._find(kind, name).origin

    def owner(self, cls: type[Any]) -> Entry | None:
        """The entry whose loaded class this is."""
        return next((e for e in self._entries.values() if e.target is cls), None)

    @staticmethod
    def check_kind(kind: str) -> None:
        """Raise UserError for a kind that does not exist."""
        if kind not in KINDS:
            raise UserError(
                f"no kind '{kind}'{did_you_mean(kind, KINDS)}; kinds: {', '.join(KINDS)}"
            )

    @contextmanager
    def isolated(self) -> Iterator["Registry"]:
        """Undo, at the end, what was registered inside (for tests)."""
        self._scan()
        saved = {key: replace(entry) for key, entry in self._entries.items()}
        try:
            yield self
        finally:
            self._entries = saved

    def _find(self, kind: str, name: str) -> Entry:
        self.check_kind(kind)
        self._scan()
        entry = self._entries.get((kind, name))
        if entry is None:
            known = {e.name: e.origin for e in self.describe(kind)}
            listed = ", ".join(n if o == "built-in" else f"{n} ({o})" for n, o in known.items())
            raise UserError(
                f"{option(kind)}={name}: unknown{did_you_mean(name, known)}; "
                f"available: {listed or 'none'}"
            )
        return entry

    def _scan(self) -> None:
        if self._discover is None:
            return
        discover, self._discover = self._discover, None
        for entry in discover():
            self.add(entry)


def _where(cls: type[Any]) -> str:
    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return cls.__module__
