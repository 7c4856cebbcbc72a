import math

from mlflow.utils.validation import _validate_param_name

from draftmesh.stages.tracking import names


def test_illegal_characters_become_legal_keys() -> None:
    for key in ("a=b", "x[0]", "m@n,o", "a//b", "../up", "/root", "", "ü", "k" * 400, "a/./b"):
        _validate_param_name(names.clean_key(key))
    assert names.clean_key("draft.k") == "draft.k"


def test_keys_that_become_equal_stay_apart() -> None:
    assert names.clean_keys({"a=b": 1, "a@b": 2, "a_b": 3}) == {"a_b": 1, "a_b_2": 2, "a_b_3": 3}


def test_numbers_and_flags_keep_their_form() -> None:
    written = names.params({"k": 5, "t": 0.7, "on": True, "nothing": None, "text": "eagle"})
    assert written == {"k": "5", "t": "0.7", "on": "true", "nothing": "none", "text": "eagle"}


def test_long_values_are_cut_and_say_so() -> None:
    written = names.params({"long": "x" * 9000})["long"]
    assert len(written) == names.PARAM_LENGTH
    assert written.endswith("...")
    assert len(names.tags({"long": "x" * 9000})["long"]) == names.TAG_LENGTH


def test_only_finite_numbers_are_metrics() -> None:
    kept, dropped = names.finite({"a": 1, "b": math.nan, "c": math.inf, "d": True})
    assert kept == {"a": 1.0, "d": 1.0}
    assert dropped == ["b", "c"]
