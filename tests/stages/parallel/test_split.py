import pytest

from draftmesh.stages.parallel.split import span, split_sizes


@pytest.mark.parametrize(
    ("total", "parts", "multiple", "sizes"),
    [
        (3, 2, 1, [2, 1]),
        (1536, 4, 8, [384] * 4),
        (40, 3, 8, [16, 16, 8]),
        (50, 3, 8, [17, 17, 16]),
        (24, 4, 8, [6, 6, 6, 6]),
        (2, 4, 1, [1, 1, 0, 0]),
    ],
)
def test_sizes(total: int, parts: int, multiple: int, sizes: list[int]) -> None:
    assert split_sizes(total, parts, multiple) == sizes
    assert [span(sizes, i)[1] for i in range(parts)][-1] == total
    assert span(sizes, 1) == (sizes[0], sizes[0] + sizes[1])
