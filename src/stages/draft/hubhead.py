"""A head from the Hugging Face Hub."""

from importlib import import_module
from pathlib import Path
from typing import Any

from draftmesh.registry import UserError
from draftmesh.stages.model.explain import explained
from draftmesh.stages.model.hub import reachable
from draftmesh.stages.model.progress import quiet

_FILES = ("*.json", "*.safetensors", "*.bin", "*.pt")


def fetch_head(repository: str) -> Path:
    """The local folder of a repository's head: fetched, or from the cache if the Hub can't be
    reached. Raises UserError, in one line, if there is none."""
    hub: Any = import_module("huggingface_hub")  # takes a while, and is seldom needed
    online = reachable()
    what = f"draft.path={repository}"
    with quiet(downloads=True), explained(what, " (no such folder)"):
        try:
            folder = hub.snapshot_download(
                repository, allow_patterns=list(_FILES), local_files_only=not online
            )
        except hub.errors.LocalEntryNotFoundError:
            raise UserError(
                f"{what}: no such folder, not in the Hub's cache, and the Hub cannot be reached"
            ) from None
    return Path(folder)
