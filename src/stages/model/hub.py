"""The Hugging Face Hub, asked once instead of through many retries."""

from pathlib import Path

from huggingface_hub import constants, get_session
from transformers.utils.hub import cached_file

_SECONDS = 5.0


def reachable() -> bool:
    """Whether the Hub answers; False without asking when HF_HUB_OFFLINE is set."""
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=_SECONDS)
    except Exception:  # the session's HTTP library, and so its errors, depend on the Hub's version
        return False
    return True


def snapshot(repository: str, revision: str) -> Path:
    """The local folder of a repository whose config has been fetched."""
    found = cached_file(repository, "config.json", revision=revision, local_files_only=True)
    return Path(str(found)).parent
