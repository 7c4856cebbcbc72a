"""A short list of cases in which every pair of factor values that can meet does meet, and so does
every draft with every verifier, shape and sampling.

python tests/exactness/cover.py    writes cases.csv anew
"""

import csv
import sys
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from factors import FACTORS, Case, allowed

FILE = Path(__file__).with_name("cases.csv")
Pair = tuple[str, str, str, str]
"""(factor, value, factor, value)."""


def every_case() -> Iterator[Case]:
    """The whole product, refused combinations included."""
    for values in product(*FACTORS.values()):
        yield Case(*values)


def pairs(case: Case) -> set[Pair]:
    """The pairs of values that meet in a case."""
    return {(a, x, b, y) for (a, x), (b, y) in combinations(vars(case).items(), 2)}


def together(case: Case) -> tuple[str, ...]:
    """The values that meet in full."""
    return case.draft, case.verifier, case.shape, case.sampling


def possible_pairs() -> set[Pair]:
    """The pairs that meet in some allowed case."""
    return {pair for case in every_case() if allowed(case) for pair in pairs(case)}


def refused_pairs() -> list[Pair]:
    """The pairs that meet in none."""
    every = {pair for case in every_case() for pair in pairs(case)}
    return sorted(every - possible_pairs())


def cover() -> list[Case]:
    """Greedily the case with most that is new, the first of equals."""
    cases = [case for case in every_case() if allowed(case)]
    chosen: list[Case] = []
    new = {case: pairs(case) | {together(case)} for case in cases}
    missing = set().union(*new.values())
    while missing:
        best = max(cases, key=lambda case: len(new[case] & missing))
        chosen.append(best)
        missing -= new[best]
    return chosen


def read() -> list[Case]:
    """The checked-in list."""
    with FILE.open(newline="") as file:
        return [Case(**line) for line in csv.DictReader(file)]


def write(cases: list[Case]) -> None:
    """Check a list in."""
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, FACTORS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(vars(case) for case in cases)


if __name__ == "__main__":
    found = cover()
    write(found)
    print(f"{len(found)} cases cover {len(possible_pairs())} pairs")
