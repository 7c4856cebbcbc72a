import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftmesh.stages.model.cache import SlotCache

CAPACITY, CPU = 24, torch.device("cpu")
LAYERS = {0: (2, 3, 3), 2: (1, 2, 4)}
"""layer -> (heads, key width, value width)."""


class Reference:
    """Committed and written token numbers as plain lists."""

    def __init__(self, rows: int) -> None:
        self.committed: list[list[int]] = [[] for _ in range(rows)]
        self.written: list[list[int]] = [[] for _ in range(rows)]


def write(cache: SlotCache, numbers: list[list[int]], offset: int) -> dict[int, torch.Tensor]:
    """Write tokens, keys and values being their numbers, in every layer; the keys handed back."""
    end = cache.place(len(numbers[0]), offset)
    seen = {}
    for layer, (heads, width, value_width) in LAYERS.items():
        value = torch.tensor(numbers, dtype=torch.float64)[:, None, :, None] + layer / 10
        keys, values = cache.update(
            value.expand(-1, heads, -1, width), value.expand(-1, heads, -1, value_width), layer
        )
        assert keys.shape == (len(numbers), heads, end, width)
        assert values.shape == (len(numbers), heads, end, value_width)
        seen[layer] = keys
    return seen


def check(cache: SlotCache, reference: Reference) -> None:
    assert cache.lengths.tolist() == cache.host_lengths == [len(c) for c in reference.committed]
    for layer in LAYERS:
        if layer not in cache.keys:
            continue
        for row, numbers in enumerate(reference.committed):
            wanted = torch.tensor(numbers, dtype=torch.float64) + layer / 10
            for store in (cache.keys, cache.values):
                kept = store[layer][row, :, : len(numbers)]
                assert torch.equal(kept, wanted[None, :, None].expand_as(kept))


@settings(max_examples=150)
@given(st.data())
def test_every_order_of_operations_keeps_the_right_tokens(data):
    rows = data.draw(st.integers(1, 3))
    cache, reference, number = SlotCache(rows, CAPACITY, CPU), Reference(rows), 1
    for _ in range(data.draw(st.integers(1, 6))):
        rows = len(reference.committed)
        longest = max(len(c) for c in reference.committed)
        size = data.draw(st.integers(1, 4))
        if longest + 2 * size > CAPACITY:
            break
        parts = data.draw(st.integers(1, 2))  # a tree that grows in several forwards
        reference.written = [[] for _ in range(rows)]
        for part in range(parts):
            numbers = [[number + row * size + i for i in range(size)] for row in range(rows)]
            number += rows * size
            seen = write(cache, numbers, part * size)
            for row in range(rows):
                reference.written[row] += numbers[row]
                at = len(reference.committed[row])
                whole = [*reference.committed[row], *reference.written[row]]
                assert seen[0][row, 0, : at + (part + 1) * size, 0].tolist() == whole
        total = parts * size
        counts = [data.draw(st.integers(0, total)) for _ in range(rows)]
        if data.draw(st.booleans()):
            cache.advance(torch.tensor(counts))
            paths = [list(range(count)) for count in counts]
        else:
            paths = [
                sorted(data.draw(st.sets(st.integers(0, total - 1), min_size=c, max_size=c)))
                for c in counts
            ]
            width = data.draw(st.integers(max(counts), total))
            padded = [line + [0] * (width - len(line)) for line in paths]
            cache.keep(torch.tensor(padded).view(rows, width), torch.tensor(counts))
        for row, line in enumerate(paths):
            reference.committed[row] += [reference.written[row][node] for node in line]
        check(cache, reference)
        if data.draw(st.booleans()):
            keep = data.draw(st.permutations(range(rows)))[: data.draw(st.integers(1, rows))]
            cache.select(torch.tensor(keep))
            reference.committed = [reference.committed[row] for row in keep]
            check(cache, reference)


def test_what_is_not_committed_is_overwritten():
    cache = SlotCache(1, 8, CPU)
    write(cache, [[1, 2, 3]], 0)
    cache.advance(torch.tensor([1]))
    seen = write(cache, [[7, 8]], 0)
    assert seen[0][0, 0, :, 0].tolist() == [1, 7, 8]


def test_unused_columns_of_a_shorter_row_are_finite():
    cache = SlotCache(2, 8, CPU)
    write(cache, [[1, 2, 3], [4, 5, 6]], 0)
    cache.advance(torch.tensor([3, 1]))
    assert write(cache, [[7], [8]], 0)[0].isfinite().all()


def test_a_forward_past_the_capacity_is_a_bug():
    cache = SlotCache(1, 4, CPU)
    with pytest.raises(AssertionError, match="4 slots"):
        cache.place(5)


def test_no_rows_left():
    cache = SlotCache(2, 4, CPU)
    cache.select(torch.tensor([], dtype=torch.long))
    assert cache.rows == 0


def test_layers_may_be_on_other_devices():
    """As with model.device_map; tensors without data stand for a second GPU."""
    cache, elsewhere = SlotCache(2, 8, CPU), torch.device("meta")
    for lengths in ([1, 3], [1, 2]):  # a uniform forward, then ragged ones
        cache.place(3)
        for layer, device in enumerate((CPU, elsewhere)):
            key = torch.ones(2, 1, 3, 4, device=device)
            assert cache.update(key, key, layer)[0].device == device
        cache.keep(torch.tensor([[0, 2, 1], [2, 1, 0]]), torch.tensor(lengths))
    cache.select(torch.tensor([1]))
    assert [buffer.device for buffer in cache.keys.values()] == [CPU, elsewhere]
    assert cache.keys[1].shape == (1, 1, 8, 4)
