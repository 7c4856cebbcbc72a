import pytest
import torch

from draftmesh.registry import UserError
from draftmesh.stages.model import dtype
from draftmesh.stages.model.dtype import cpu_flags, resolve_dtype

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"avx2", "avx512_bf16"}, torch.bfloat16),
        ({"amx_bf16"}, torch.bfloat16),
        ({"asimd", "bf16"}, torch.bfloat16),
        ({"avx2", "avx512f"}, torch.float32),
        (set(), torch.float32),
    ],
)
def test_auto_is_bfloat16_where_the_cpu_multiplies_it(monkeypatch, flags, expected):
    monkeypatch.setattr(dtype, "cpu_flags", lambda: flags)
    assert resolve_dtype("auto", CPU) == expected


def test_auto_asks_the_gpu(monkeypatch):
    for fast, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda fast=fast, **_: fast)
        assert resolve_dtype("auto", torch.device("cuda", 0)) == expected


def test_names():
    assert resolve_dtype("float64", CPU) == torch.float64
    with pytest.raises(UserError, match=r"model\.dtype=half is not one of auto, float64"):
        resolve_dtype("half", CPU)


def test_flags_are_read_from_x86_and_arm_and_may_be_missing(tmp_path):
    for key in ("flags", "Features"):
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{key}\t: fpu bf16 sse\n")
        assert cpu_flags(tmp_path / "cpuinfo") == {"fpu", "bf16", "sse"}
    assert cpu_flags(tmp_path / "none") == set()
