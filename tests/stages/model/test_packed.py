import copy
import io

import pytest
import torch
from torch import nn

from draftmesh.stages.model.packed import PackedLinear, affordable, linear, pack, packable

NO_ONEDNN = not packable(torch.empty(1, 1))
NO_BFLOAT16 = not packable(torch.empty(1, 1, dtype=torch.bfloat16))
needs_onednn = pytest.mark.skipif(NO_ONEDNN, reason="a CPU without oneDNN")
DTYPES = [
    pytest.param(torch.float32, marks=needs_onednn),
    pytest.param(
        torch.bfloat16,
        marks=pytest.mark.skipif(NO_BFLOAT16, reason="a CPU without bfloat16 products"),
    ),
]
CLOSE = {torch.float32: 1e-5, torch.bfloat16: 0.02}


def model(dtype):
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(48, 80), nn.SiLU(), nn.Linear(80, 32, bias=False))
    return nn.Sequential(inner, nn.LayerNorm(32)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 8), (1, 64), (1, 65), (0, 4)])
def test_packed_layers_compute_the_same(shape, dtype):
    x = torch.randn(*shape, 48, dtype=dtype)
    plain, packed = model(dtype), model(dtype)
    pack(packed)
    with torch.inference_mode():
        torch.testing.assert_close(packed(x), plain(x), rtol=CLOSE[dtype], atol=CLOSE[dtype])
    assert type(packed[0][0]) is type(packed[0][2]) is PackedLinear


@needs_onednn
def test_the_copy_serves_the_rows_for_which_it_is_faster():
    layer = PackedLinear(torch.zeros(16, 8), None)
    layer.packed = PackedLinear(torch.ones(16, 8), None).packed
    with torch.inference_mode():
        by_copy = {rows: bool(layer(torch.ones(1, rows, 8)).any()) for rows in (1, 3, 4, 64, 65)}
    assert by_copy == {1: False, 3: False, 4: True, 64: True, 65: False}


@needs_onednn
def test_gradients_pass_and_weights_stay_shared():
    plain = model(torch.float32)
    packed = copy.deepcopy(plain)
    weight = packed[0][0].weight
    pack(packed)
    assert packed[0][0].weight is weight
    assert packed.state_dict().keys() == plain.state_dict().keys()
    x = torch.randn(5, 48)
    for each in (plain, packed):
        each(x).square().sum().backward()
    assert torch.equal(weight.grad, plain[0][0].weight.grad)


@needs_onednn
def test_a_layer_can_be_copied_saved_and_changed():
    layer = PackedLinear(torch.randn(16, 8), torch.randn(16))
    x = torch.randn(8, 8)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    with torch.inference_mode():
        expected = layer(x)
        assert torch.equal(copy.deepcopy(layer)(x), expected)
        assert torch.equal(torch.load(file, weights_only=False)(x), expected)
        torch.testing.assert_close(layer.double()(x.double()).float(), expected)
        torch.testing.assert_close(layer.float()(x), expected)
    assert len(layer.rows)


@needs_onednn
@torch.no_grad()
def test_a_weight_that_is_written_into_or_replaced_is_laid_out_anew():
    layer, x = PackedLinear(torch.randn(16, 8), None), torch.randn(8, 8)
    layer.weight.mul_(2)
    torch.testing.assert_close(layer(x), x @ layer.weight.T)
    layer.load_state_dict({"weight": torch.randn(16, 8)})
    torch.testing.assert_close(layer(x), x @ layer.weight.T)
    layer.weight = nn.Parameter(torch.randn(16, 8))
    torch.testing.assert_close(layer(x), x @ layer.weight.T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_weight_and_a_bias_are_enough(dtype):
    weight, bias = torch.randn(24, 16, dtype=dtype), torch.randn(24, dtype=dtype)
    x = torch.randn(5, 16, dtype=dtype)
    expected = nn.functional.linear(x, weight, bias)
    with torch.inference_mode():
        found = linear(weight, bias)(x)
    torch.testing.assert_close(found, expected, rtol=CLOSE[dtype], atol=CLOSE[dtype])


def test_other_dtypes_stay_as_they_are():
    plain, packed = model(torch.float64), model(torch.float64)
    pack(packed)
    x = torch.randn(2, 48, dtype=torch.float64)
    assert torch.equal(packed(x), plain(x))
    assert type(packed[0][0]) is nn.Linear
    assert torch.equal(linear(plain[0][0].weight, None)(x), x @ plain[0][0].weight.T)


def test_copies_leave_the_memory_to_others(monkeypatch):
    layers = nn.Sequential(nn.Linear(80, 80), nn.Linear(80, 40)).bfloat16()
    eight_copies = 8 * 2 * (80 * 80 + 80 * 40)
    for memory, processes, fits in ((0, 1, True), (-1, 1, False), (0, 2, False)):
        limit = eight_copies + memory
        monkeypatch.setattr("draftmesh.stages.model.packed.all_memory", lambda m=limit: m)
        assert affordable(layers, processes) == fits
