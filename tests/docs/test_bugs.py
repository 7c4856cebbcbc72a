"""docs/bugs.md names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "bugs.md").read_text()


def named() -> list[tuple[str, str]]:
    """(file or folder, test) of every name in the table; `::test` belongs to the file before."""
    found, file = [], ""
    for line in TEXT.splitlines():
        cell = line.split("|")[3] if line.startswith("|") and line.count("|") > 3 else ""
        for name in re.findall(r"`([\w/]*(?:::\w+)?)`", cell):
            path, _, test = name.partition("::")
            file = path or file
            found.append((file, test))
    return found


def test_there_are_names():
    assert len(named()) > 20


@pytest.mark.parametrize(("file", "test"), named())
def test_it_exists(file, test):
    places = [ROOT / "tests" / file, ROOT / "tests" / "stages" / file]
    if not test and any(place.is_dir() for place in places):
        return
    sources = [p.with_suffix(".py") for p in places if p.with_suffix(".py").exists()]
    assert sources, file
    assert f"def {test}(" in sources[0].read_text() if test else True
