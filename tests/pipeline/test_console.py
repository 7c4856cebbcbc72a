import io
from collections.abc import Callable

from rich.console import Console

from draftmesh.pipeline.console import show_completion, show_summary
from draftmesh.pipeline.results import results_of
from draftmesh.pipeline.summary import rows, shares
from draftmesh.registry.contracts.request import Completion
from draftmesh.registry.contracts.result import RunResult
from draftmesh.stages.task.records.console import standard_output

GREEN = "\x1b[32m"


def printed(terminal: bool, show: Callable[[Console], None]) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, highlight=False, width=100)
    show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_drafted_tokens_are_coloured_on_a_terminal_only(
    make_completion: Callable[..., Completion],
) -> None:
    completion = make_completion([1, 2])
    completion.text = "red [bold]green blue"
    pieces = ["red", " [bold]green", " blue"]
    shown = printed(True, lambda console: show_completion(console, completion, pieces))
    assert f"red{GREEN} [bold]green\x1b[0m blue" in shown
    plain = printed(False, lambda console: show_completion(console, completion, pieces))
    assert "red [bold]green blue\n" in plain
    assert "\x1b" not in plain


def test_special_tokens_are_not_shown(make_completion: Callable[..., Completion]) -> None:
    completion = make_completion([1, 2])
    completion.text = "red green"
    pieces = ["red", " green", "<eos>"]
    shown = printed(True, lambda console: show_completion(console, completion, pieces))
    assert "<eos>" not in shown
    assert f"red{GREEN} green" in shown


def test_pieces_that_do_not_fit_fall_back_to_the_text(
    make_completion: Callable[..., Completion],
) -> None:
    completion = make_completion([1, 2])
    completion.text = "the real text"
    shown = printed(True, lambda console: show_completion(console, completion, ["a", "b", "c"]))
    assert "the real text" in shown


def test_the_table_has_what_people_ask_for(result: RunResult) -> None:
    results = results_of(result, {"threads": 2, "world_size": 1})
    text = printed(False, lambda console: show_summary(console, "run", results, "run 1 in x"))
    wanted = ("tokens/s", "mean acceptance length", "acceptance rate", "speed-up", "exactness")
    assert all(label in text for label in wanted)
    assert "draft 20%, verify 50%" in text
    assert "0.80x" in text
    assert "CPU threads" in text
    assert text.rstrip().endswith("Recorded as run 1 in x")


def test_rows_that_do_not_apply_are_left_out(result: RunResult) -> None:
    assert rows({}) == []
    assert shares({"wall_s": 0.0}) == {}
    labels = [row.label for row in rows({"throughput_tok_s": 5.0, "new_tokens": 5})]
    assert labels == ["tokens/s"]
    lossy = [row.label for row in rows(results_of(result, {"lossy": True}))]
    assert "lossy" in lossy


def test_plain_decoding_says_that_nothing_was_drafted() -> None:
    plain = {"mean_acceptance_length": 1.0, "acceptance_rate": 0.0, "drafted_tokens": 0}
    found = {row.label: row for row in rows(plain)}
    assert found["mean acceptance length"].value == "1.00"
    assert found["acceptance rate"].note == "nothing was drafted"


def test_piped_output_is_not_wrapped() -> None:
    assert standard_output().width > 1000


def test_a_title_longer_than_its_table_is_not_broken() -> None:
    shown = printed(False, lambda console: show_summary(console, "train_eagle-k3_single_s0", {}))
    assert "train_eagle-k3_single_s0" in shown
