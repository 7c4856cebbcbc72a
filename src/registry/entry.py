"""One registered plugin, loaded when it is first asked for."""

import dataclasses
import inspect
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from draftmesh.registry.errors import UserError
from draftmesh.registry.kinds import KINDS


@dataclasses.dataclass
class Entry:
    """A name under a kind, where it comes from, and its class or the way to it.

    `target` is a class, a "module:Class" string, or an entry point of an installed distribution.
    `rivals` are other entries that claim the same name; choosing it is then an error.
    """

    kind: str
    name: str
    target: type[Any] | str | EntryPoint
    origin: str
    description: str = ""
    rivals: tuple["Entry", ...] = ()

    @property
    def address(self) -> str:
        """The class as "module:Class", without importing it."""
        if isinstance(self.target, str):
            return self.target
        if isinstance(self.target, type):
            return f"{self.target.__module__}:{self.target.__qualname__}"
        # No isinstance test: once imported, the importlib_metadata backport hands out its own.
        return self.target.value.replace(" ", "")

    def same(self, other: "Entry") -> bool:
        """Whether both lead to one class (which a package may re-export from a module below it)."""
        (module, _, name), (their_module, _, their_name) = (
            self.address.partition(":"),
            other.address.partition(":"),
        )
        nested = f"{module}.".startswith(f"{their_module}.") or f"{their_module}.".startswith(
            f"{module}."
        )
        return name == their_name and nested

    def load(self) -> type[Any]:
        """Import the class and check that it keeps the kind's contract."""
        self._refuse_rivals()
        if isinstance(self.target, type):
            loaded: Any = self.target
        else:
            loaded = self._import()
        self._check(loaded)
        self.target = loaded
        stage: type[Any] = loaded
        return stage

    def _refuse_rivals(self) -> None:
        if not self.rivals:
            return
        claims = " and ".join(f"{e.origin} ({e.address})" for e in (self, *self.rivals))
        raise UserError(
            f"{self.kind} '{self.name}' is provided by both {claims}: uninstall one of them, or "
            "list the distributions to use in the environment variable DRAFTMESH_PLUGINS"
        )

    def _import(self) -> Any:
        module, _, attribute = self.address.partition(":")
        try:
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except Exception as error:  # a plugin may fail in any way; the others keep working
            raise UserError(
                f"{self.kind} '{self.name}' from {self.origin} failed to import: "
                f"{type(error).__name__}: {error}"
            ) from error
        return found

    def _check(self, cls: Any) -> None:
        problem = ""
        if not isinstance(cls, type):
            problem = "is not a class"
        elif not dataclasses.is_dataclass(getattr(cls, "Config", None)):
            problem = "has no nested dataclass Config"
        elif missing := [m for m in KINDS[self.kind] if not _defines(cls, m)]:
            problem = f"lacks {', '.join(missing)}"
        if problem:
            raise UserError(
                f"{self.kind} '{self.name}' from {self.origin}: {self.address} {problem}"
            )


def _defines(cls: type[Any], method: str) -> bool:
    """Asked of the class itself: every class has the `__call__` that makes instances."""
    return any(callable(vars(base).get(method)) for base in cls.__mro__)


def first_line(cls: type[Any]) -> str:
    """The first line of a class's own docstring."""
    text = inspect.cleandoc(cls.__doc__ or "")
    return text.splitlines()[0].rstrip(".") if text else ""
