"""The user's own modules (`plugins=[my.module]`), imported in the parent and in every rank."""

import os
import sys
from collections.abc import Iterable
from importlib import import_module

from draftmesh.registry.errors import UserError


def load_plugins(modules: Iterable[str]) -> None:
    """Import each module, so that its `@register` decorators run; the working directory counts.

    Raises UserError naming the module if it cannot be found or fails to import.
    """
    here = os.getcwd()
    for module in modules:
        if module.endswith(".py"):
            raise UserError(f"plugins: '{module}' is a file: write plugins=[{module[:-3]}]")
        if here not in sys.path:
            sys.path.append(here)
        try:
            import_module(module)
        except UserError:
            raise
        except Exception as error:
            raise UserError(_reason(module, here, error)) from error


def _reason(module: str, here: str, error: Exception) -> str:
    absent = isinstance(error, ModuleNotFoundError) and module.startswith(error.name or "?")
    if not absent:
        return f"plugins: '{module}' failed to import: {type(error).__name__}: {error}"
    return f"plugins: no module '{module}' in {here} or among installed packages"
