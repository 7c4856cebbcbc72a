"""The checked-in list of cases is what it claims to be."""

from cover import cover, every_case, pairs, possible_pairs, read, refused_pairs, together
from factors import FACTORS, SHAPES, allowed


def test_every_pair_that_can_meet_does():
    met = {pair for case in read() for pair in pairs(case)}
    missing = sorted(possible_pairs() - met)
    assert not missing, "run python tests/exactness/cover.py"


def test_drafts_meet_all_verifiers_shapes_and_samplings():
    possible = {together(case) for case in every_case() if allowed(case)}
    assert {together(case) for case in read()} == possible


def test_no_case_is_refused_or_unknown_or_there_twice():
    cases = read()
    assert all(allowed(case) for case in cases)
    assert set(cases) <= set(every_case())
    assert len(set(cases)) == len(cases)


def test_the_list_is_the_one_that_is_made():
    assert read() == cover()


def test_the_product_is_as_wide_as_it_should_be():
    assert len(FACTORS["arch"]) >= 6
    assert set(FACTORS["shape"]) == set(SHAPES) >= {"chain", "static", "dynamic"}
    assert FACTORS["batch"] == ("1", "5")
    assert len(read()) < len([case for case in every_case() if allowed(case)]) / 5


def test_what_is_refused():
    apart = {(a, b) for _, a, _, b in refused_pairs()}
    assert {("ratio", "dynamic"), ("block", "dynamic"), ("block", "static")} < apart
    assert {("ngram", "static"), ("exit", "gpt2"), ("small", "mamba")} < apart
    assert not any("match" in pair for pair in apart)
