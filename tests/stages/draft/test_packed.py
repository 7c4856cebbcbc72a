import pytest
import torch
from torch import nn

from draftmesh.stages.draft.packed import PackedLinear, linear, pack, packable

needs_bfloat16 = pytest.mark.skipif(
    not packable(torch.empty(1, 1, dtype=torch.bfloat16)), reason="a CPU without bfloat16 products"
)


def model(dtype):
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(48, 80), nn.SiLU(), nn.Linear(80, 32, bias=False))
    return nn.Sequential(inner, nn.LayerNorm(32)).to(dtype)


@needs_bfloat16
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 70)])
def test_packed_layers_compute_the_same(shape):
    x = torch.randn(*shape, 48, dtype=torch.bfloat16)
    plain, packed = model(torch.bfloat16), model(torch.bfloat16)
    pack(packed)
    with torch.inference_mode():
        torch.testing.assert_close(packed(x), plain(x), rtol=0.02, atol=0.02)
    assert isinstance(packed[0][0], PackedLinear)
    assert isinstance(packed[0][2], PackedLinear)


@needs_bfloat16
def test_a_weight_and_a_bias_are_enough():
    weight, bias = torch.randn(24, 16).bfloat16(), torch.randn(24).bfloat16()
    x = torch.randn(3, 16).bfloat16()
    expected = nn.functional.linear(x, weight, bias)
    torch.testing.assert_close(linear(weight, bias)(x), expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_other_dtypes_stay_as_they_are(dtype):
    plain, packed = model(dtype), model(dtype)
    pack(packed)
    x = torch.randn(2, 48, dtype=dtype)
    assert torch.equal(packed(x), plain(x))
    assert isinstance(packed[0][0], nn.Linear)
    assert torch.equal(linear(plain[0][0].weight, None)(x), x @ plain[0][0].weight.T)
