import json

import pytest
from built import built

from draftmesh.registry import UserError
from draftmesh.stages.data.selfgen import SelfGen
from draftmesh.stages.task.training.selfgen import write_chats

TEMPLATE = "{% for m in messages %}<{{ m.content }}>{% endfor %}"


def pipeline(folder, *overrides):
    made = built(folder, "draft=none", "data=selfgen", "max_new_tokens=6", *overrides)
    made.checkpoint.tokenizer.chat_template = TEMPLATE
    return made


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "asked.jsonl"
    asked = [{"prompt": "ab " * n, "category": "even" if n % 2 == 0 else "odd"} for n in (4, 1, 3)]
    path.write_text("\n".join(map(json.dumps, asked)))
    return path


def test_the_answers_to_a_files_prompts_are_the_models_own(tmp_path, prompts):
    made = pipeline(tmp_path, f"data.path={prompts}", "data.sampled=0")
    records = lines(write_chats(made, tmp_path / "chats"))
    plain = made.generate(made.plain, made.requests()).completions
    assert {r["index"]: r["response"] for r in records} == {c.request.index: c.text for c in plain}
    assert {r["index"]: r["style"] for r in records} == {0: "even", 1: "odd", 2: "odd"}
    assert all(r["temperature"] == 0 for r in records)


def test_a_share_of_the_answers_is_drawn(tmp_path, prompts):
    made = pipeline(tmp_path, f"data.path={prompts}", "data.sampled=0.34", "data.temperature=0.7")
    temperatures = sorted(r["temperature"] for r in lines(write_chats(made, tmp_path / "chats")))
    assert temperatures == [0, 0, 0.7]


def test_a_stopped_run_goes_on_behind_its_last_whole_line(tmp_path, prompts):
    made = pipeline(tmp_path, f"data.path={prompts}")
    path = write_chats(made, tmp_path / "chats")
    whole = path.read_text()
    first, second, _ = whole.splitlines(keepends=True)
    path.write_text(first + second[:10])
    assert sorted(write_chats(made, tmp_path / "chats").read_text()) == sorted(whole)
    again = path.read_text()
    assert write_chats(made, tmp_path / "chats").read_text() == again


def test_the_target_writes_its_own_prompts_with_the_beginnings_asked_for(tmp_path):
    made = pipeline(tmp_path, "data.count=16", "data.prompt_tokens=6", "data.starts=[ab,cd]")
    # A random model hardly ever ends a prompt: let it end with a common token.
    made.checkpoint = type(made.checkpoint)(
        **{**vars(made.checkpoint), "eos_ids": tuple(range(0, 258, 2))}
    )
    records = lines(write_chats(made, tmp_path / "chats"))
    written = lines(tmp_path / "chats" / "prompts.jsonl")
    assert [r["prompt"] for r in sorted(written, key=lambda r: r["index"])] == ["ab", "cd"] * 8
    asked = {(r["prompt"] + r["response"]).strip() for r in written if r["finish"] == "stop"}
    assert records
    assert {r["prompt"] for r in records} <= asked


def test_a_target_that_ends_no_prompt_is_told(tmp_path):
    made = pipeline(tmp_path, "data.count=2", "data.prompt_tokens=1")
    with pytest.raises(UserError, match=r"data\.count=2"):
        write_chats(made, tmp_path / "chats")


def test_without_a_chat_template_prompts_are_needed(tmp_path):
    made = pipeline(tmp_path)
    made.checkpoint.tokenizer.chat_template = None
    with pytest.raises(UserError, match=r"data\.path"):
        write_chats(made, tmp_path / "chats")


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ({"count": 0}, "data.count=0"),
        ({"sampled": 1.5}, "data.sampled=1.5"),
        ({"temperature": 0.0}, "data.temperature=0.0"),
    ],
)
def test_options_that_mean_nothing_are_refused(option, named):
    with pytest.raises(UserError, match=named):
        SelfGen(SelfGen.Config(**option))


def test_other_tasks_have_no_prompts_from_it():
    with pytest.raises(UserError, match="task=train"):
        SelfGen(SelfGen.Config()).load()
