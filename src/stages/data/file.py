"""A file of prompts, one JSON object a line."""

import gzip
import json
from pathlib import Path
from typing import Any

from draftmesh.registry.contracts.stage import Prompt
from draftmesh.registry.errors import UserError
from draftmesh.stages.data.record import to_prompt
from draftmesh.stages.data.selection import Selection


def read_prompts(path: Path, selection: Selection) -> list[Prompt]:
    """The file's prompts (.jsonl, or .jsonl.gz), as the selection wants them.

    Raises UserError for a file that is missing, empty, not UTF-8 or malformed, with the line's
    number. Lines beyond the selection's limit are not looked at.
    """
    selection.check()
    prompts: list[Prompt] = []
    for number, line in enumerate(_content(path).split(b"\n"), start=1):
        if selection.limit is not None and len(prompts) == selection.limit:
            break
        where = f"data.path={path} line {number}"
        if text := _decoded(line, where).strip():
            prompts.append(selection.apply(to_prompt(_parsed(text, where), where, number)))
    if not prompts:
        raise UserError(f"data.path={path} has no prompts: choose another file")
    return prompts


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except FileNotFoundError:
        raise UserError(f"data.path={path} does not exist") from None
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"data.path={path} cannot be read: {reason}") from None
    return content.removeprefix(b"\xef\xbb\xbf")


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{where} is not UTF-8: mend it or change data.path") from None


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(
            f"{where} is malformed JSON ({error}): mend it or change data.path"
        ) from None
