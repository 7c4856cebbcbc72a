"""What only rank 0 knows, told to every rank."""

from collections.abc import Sequence

from draftmesh.registry.contracts.ranks import Ranks


def share(ranks: Ranks, rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Rank 0's rows of non-negative numbers on every rank; what the others pass is ignored.

    A maximum over all ranks carries them, which is the one exchange that the contract offers.
    """
    if ranks.world == 1:
        return [list(row) for row in rows]
    mine = rows if ranks.rank == 0 else []
    (count,) = ranks.agree(len(mine))
    if count == 0:
        return []
    lengths = ranks.agree(*([len(row) for row in mine] or [0] * count))
    flat = [value for row in mine for value in row] or [0] * sum(lengths)
    values = iter(ranks.agree(*flat) if flat else ())
    return [[next(values) for _ in range(length)] for length in lengths]
