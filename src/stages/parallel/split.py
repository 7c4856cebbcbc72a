"""Cutting a dimension into parts, unevenly if need be."""


def split_sizes(total: int, parts: int, multiple: int = 1) -> list[int]:
    """Sizes of `parts` consecutive pieces of `total`, the larger ones first.

    Pieces are multiples of `multiple` where total is one and there is enough for every part.
    """
    unit = multiple if total % multiple == 0 and total >= parts * multiple else 1
    base, rest = divmod(total // unit, parts)
    return [(base + (part < rest)) * unit for part in range(parts)]


def span(sizes: list[int], index: int) -> tuple[int, int]:
    """Start and end of one of consecutive pieces."""
    start = sum(sizes[:index])
    return start, start + sizes[index]
