import os

import pytest

from draftmesh.stages.model import manifest
from draftmesh.stages.model.manifest import intact, write_manifest


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "weights").write_bytes(b"abc" * 100)
    (tmp_path / "config").write_text("{}")
    write_manifest(tmp_path)
    return tmp_path


def test_an_untouched_folder_is_not_hashed(folder, monkeypatch):
    monkeypatch.setattr(manifest, "file_sha256", None)
    assert intact(folder)


@pytest.mark.parametrize("damage", ["shorter", "other", "gone", "unlisted", "mangled"])
def test_damage_is_noticed(folder, damage):
    weights, listing = folder / "weights", folder / ".manifest.json"
    if damage == "shorter":
        weights.write_bytes(b"abc" * 99)
    elif damage == "other":
        weights.write_bytes(b"abd" * 100)
        os.utime(weights, (1, 1))
    elif damage == "gone":
        weights.unlink()
    elif damage == "unlisted":
        listing.unlink()
    else:
        listing.write_text("[1")
    assert not intact(folder)


def test_a_copy_is_hashed_once(folder, monkeypatch):
    os.utime(folder / "weights", (1, 1))
    assert intact(folder)
    monkeypatch.setattr(manifest, "file_sha256", None)
    assert intact(folder)
