import torch
from harness import requests

from draftmesh.stages.engine.sequences import Sequences
from draftmesh.stages.model.bytetokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer(96)


def sequences(prompts=((5, 6, 7), (8,)), eos=(0,), context=100, **options):
    return Sequences(requests(prompts, **options), TOKENIZER, eos, context)


def test_a_step_is_cut_behind_eos_and_marks_what_was_drafted():
    rows = sequences()
    assert not rows.append(0, [40])
    assert not rows.append(0, [41, 42, 43])
    assert rows.append(0, [44, 0, 45, 46])
    completion = rows.completions[0]
    assert completion.token_ids == [40, 41, 42, 43, 44, 0]
    assert completion.drafted == [False, True, True, False, True, True]
    assert completion.accept_lengths == [1, 3, 2]
    assert completion.finish_reason == "stop"
    assert completion.text == TOKENIZER.decode([40, 41, 42, 43, 44])


def test_limits_are_those_of_the_request_or_of_the_context():
    rows = sequences(max_new_tokens=10, context=9)
    assert rows.limits == [6, 8]
    assert rows.remaining().tolist() == [6, 8]
    assert not rows.append(1, [40, 41, 42])
    assert rows.remaining().tolist() == [6, 5]
    assert rows.append(0, [40, 41, 42, 43, 44, 45, 46])
    assert rows.completions[0].token_ids == [40, 41, 42, 43, 44, 45]
    assert rows.completions[0].finish_reason == "length"


def test_eos_as_the_last_token_allowed_is_a_stop():
    rows = sequences(max_new_tokens=2)
    assert rows.append(0, [40, 0, 41])
    assert rows.completions[0].finish_reason == "stop"


def test_histories_are_the_prefixes_of_the_rows_that_are_left():
    rows = sequences(((5, 6, 7), (8,), (9, 9)))
    for row in range(3):
        rows.append(row, [40 + row])
    rows.append(0, [50, 51])
    rows.select([2, 0])
    assert len(rows) == 2
    assert rows.lengths == [3, 6]
    nodes = torch.tensor([[1, 2], [3, 4]])
    history = rows.history(nodes, torch.tensor([[-1, 0], [-1, -1]]))
    assert history.path(0, 0).tolist() == [9, 9, 42]
    assert history.path(0, 2).tolist() == [9, 9, 42, 1, 2]
    assert history.path(1, 2).tolist() == [5, 6, 7, 40, 50, 51, 4]
    assert history.prompts.tolist() == [2, 3]
