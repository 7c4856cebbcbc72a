"""Where the heads that come with DraftMesh lie."""

import json
from pathlib import Path

import draftmesh
from draftmesh.registry import UserError


def heads_folder() -> Path:
    """Inside an installed package, or beside the sources."""
    package = Path(draftmesh.__file__).parent
    inside = package / "heads"
    return inside if inside.is_dir() else package.parent / "heads"


def shipped_head(kind: str, model: str, path: str | None) -> Path:
    """The folder of a head: `path` if given, else the one in `heads/` for this kind and model.

    Raises UserError naming draft.path if there is neither.
    """
    if path is not None:
        folder = Path(path).expanduser()
        if not folder.is_dir():
            raise UserError(f"draft.path={path}: no such folder")
        return folder
    for config in sorted(heads_folder().glob("*/config.json")):
        card = json.loads(config.read_text())
        if card.get("draftmesh_draft") == kind and card.get("target") == model:
            return config.parent
    raise UserError(
        f"draft={kind}: no head comes with DraftMesh for model {model}; choose draft=ngram, which "
        f"needs none, give draft.path=<folder>, or train one with: python run.py task=train "
        f"draft={kind} data=jsonl data.path=<chats>"
    )
