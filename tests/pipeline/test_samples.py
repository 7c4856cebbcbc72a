import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from draftmesh.pipeline.samples import SampleLog, write_samples
from draftmesh.registry import UserError
from draftmesh.registry.contracts.request import Completion, Request

MakeCompletion = Callable[..., Completion]


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def test_a_line_has_the_agreed_names(tmp_path: Path, make_completion: MakeCompletion) -> None:
    SampleLog(tmp_path).append(make_completion([1, 3], "a"))
    [line] = lines(tmp_path)
    agreed = "id prompt text token_ids prompt_tokens finish_reason accept_lengths steps"
    assert list(line)[:8] == agreed.split()
    assert line["prompt_tokens"] == 3
    assert line["accept_lengths"] == [1, 3]
    assert line["steps"] == 2
    assert line["drafted"] == [False, True, True, False]


def test_each_prompt_is_on_disk_as_soon_as_it_is_done(
    tmp_path: Path, make_completion: MakeCompletion
) -> None:
    log = SampleLog(tmp_path)
    for count, name in enumerate("ab", start=1):
        log.append(make_completion([1], name))
        assert len(lines(tmp_path)) == count


def test_prompt_order_in_the_end(tmp_path: Path, make_completion: MakeCompletion) -> None:
    first, second = make_completion([1], "a"), make_completion([1, 2], "b")
    log = SampleLog(tmp_path)
    log.append(second)
    log.append(first)
    write_samples(tmp_path, [first, second])
    assert [line["id"] for line in lines(tmp_path)] == ["a", "b"]


def test_odd_text_survives(tmp_path: Path) -> None:
    odd = 'line\nbreak "quoted" \u2028 日本 \ud800'
    SampleLog(tmp_path).append(Completion(Request("a", odd, (1,), 0, 0, 1), text=odd))
    raw = (tmp_path / "samples.jsonl").read_bytes().decode()
    assert raw.count("\n") == 1
    assert json.loads(raw)["text"] == odd


def append_many(folder: Path, name: str) -> None:
    log = SampleLog(folder)
    for _ in range(50):
        log.append(Completion(Request(name, "x" * 20_000, (1,), 0, 0, 1)))


def test_processes_share_the_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=append_many, args=(tmp_path, n)) for n in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    names = [line["id"] for line in lines(tmp_path)]
    assert sorted(names) == ["a"] * 50 + ["b"] * 50


def test_a_folder_that_cannot_be_written_names_the_option(
    tmp_path: Path, make_completion: MakeCompletion
) -> None:
    with pytest.raises(UserError, match=r"hydra\.run\.dir"):
        SampleLog(tmp_path / "absent").append(make_completion([1]))
