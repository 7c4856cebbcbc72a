"""A head from the Hugging Face Hub."""

from pathlib import Path

from draftmesh.stages.model.explain import explained
from draftmesh.stages.model.hub import reachable
from draftmesh.stages.model.progress import quiet

_FILES = ("*.json", "*.safetensors", "*.bin", "*.pt")


def fetch_head(repository: str) -> Path:
    """The local folder of a repository's head: fetched, or from the cache if the Hub can't be
    reached. Raises UserError, in one line, if there is none."""
    from huggingface_hub import snapshot_download  # takes a while to import, and is seldom needed

    online = reachable()
    hint = "" if online else " and the Hub cannot be reached"
    with quiet(downloads=True), explained(f"draft.path={repository}", f" (no such folder{hint})"):
        return Path(
            snapshot_download(repository, allow_patterns=list(_FILES), local_files_only=not online)
        )
