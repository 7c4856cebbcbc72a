"""Which kinds of stage exist, the contract of each, who provides them."""

from collections.abc import Callable
from typing import TypeVar

from draftmesh.registry.errors import UserError

T = TypeVar("T")


def register(kind: str, name: str) -> Callable[[type[T]], type[T]]:
    """Register a stage class under a kind and a name."""

    def decorate(cls: type[T]) -> type[T]:
        return cls

    return decorate


__all__ = ["UserError", "register"]
