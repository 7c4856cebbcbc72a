"""Where the heads that come with DraftMesh lie."""

import json
import re
from pathlib import Path

import draftmesh
from draftmesh.registry import UserError
from draftmesh.stages.draft.hubhead import fetch_head
from draftmesh.stages.draft.publicheads import public_head

_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def heads_folder() -> Path:
    """Inside an installed package, or beside the sources."""
    package = Path(draftmesh.__file__).parent
    inside = package / "heads"
    return inside if inside.is_dir() else package.parent / "heads"


def find_shipped(kind: str, model: str) -> Path | None:
    """The folder in `heads/` for this kind of draft and model, if there is one; of several (EAGLE-1
    and EAGLE-3), the last by name."""
    for config in sorted(heads_folder().glob("*/config.json"), reverse=True):
        card = json.loads(config.read_text())
        if card.get("draftmesh_draft") == kind and card.get("target") == model:
            return config.parent
    return None


def shipped_head(kind: str, model: str, path: str | None) -> Path:
    """The folder of a head: `path` (a folder, one of `heads/` by its name, or a Hub id) if given,
    else the one in `heads/` for this kind and model.

    Raises UserError naming draft.path if there is neither, and a public head or how to train one.
    """
    if path is not None:
        return _given(path)
    found = find_shipped(kind, model)
    if found is not None:
        return found
    public = public_head(kind, model)
    advice = (
        f"a public one is draft.path={public}"
        if public is not None
        else f"choose draft=ngram, which needs none, give draft.path=<folder or Hub id>, or train "
        f"one with: python run.py task=train draft={kind} data=jsonl data.path=<chats>"
    )
    raise UserError(f"draft={kind}: no head comes with DraftMesh for model {model}; {advice}")


def local_head(path: str) -> Path | None:
    """A folder, or one of `heads/` by its name; None for what is neither."""
    folder, shipped = Path(path).expanduser(), heads_folder() / path
    if folder.is_dir():
        return folder
    return shipped if path and (shipped / "config.json").is_file() else None


def _given(path: str) -> Path:
    found = local_head(path)
    if found is not None:
        return found
    if Path(path).expanduser().exists() or not _HUB_ID.fullmatch(path):
        raise UserError(f"draft.path={path}: no such folder")
    return fetch_head(path)
