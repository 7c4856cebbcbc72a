"""A page that needs nothing else to be read: one file, no script, no address."""

from collections.abc import Sequence
from html import escape

from draftmesh.stages.task.records.style import STYLE


def page(title: str, sections: Sequence[str]) -> str:
    """HTML sections as one page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - DraftMesh</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(sections)}</main></body></html>\n"
    )
