"""Other libraries' errors about a model, in one line of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from draftmesh.registry.errors import UserError

_LONGEST = 240


@contextmanager
def explained(what: str, hint: str = "") -> Iterator[None]:
    """Whatever goes wrong inside is the fault of `what`, an option and its value: UserError."""
    try:
        yield
    except UserError:
        raise
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"{what} does not fit the device; try model.dtype=bfloat16 or model.device_map=auto"
        ) from error
    except Exception as error:
        reason = one_line(error)
        if "trust_remote_code" in str(error):
            reason = "it brings code of its own; allow it with model.trust_remote_code=true"
        raise UserError(f"cannot load {what}{hint}: {reason}") from error


def one_line(error: Exception) -> str:
    """An exception's kind and message, shortened to a line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
