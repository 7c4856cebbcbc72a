import json

import pytest
from huggingface_hub import constants

from draftmesh.registry import UserError
from draftmesh.stages.draft import hubhead, shipped
from draftmesh.stages.draft.publicheads import public_head
from draftmesh.stages.draft.shipped import heads_folder, shipped_head


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No Hub; its cache is an empty folder."""
    monkeypatch.setattr(hubhead, "reachable", lambda: False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def test_the_default_model_has_a_head():
    assert shipped_head("eagle", "smollm2", None).parent == heads_folder()


@pytest.mark.parametrize(
    ("kind", "model", "head"),
    [
        ("eagle", "meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"),
        ("eagle", "llama-3.1-8b-instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"),
        ("eagle", "Llama-2-7b-chat-hf", "yuhuili/EAGLE-llama2-chat-7B"),
        ("medusa", "lmsys/vicuna-7b-v1.3", "FasterDecoding/medusa-vicuna-7b-v1.3"),
        ("medusa", "Qwen/Qwen3-8B", None),
        ("eagle", "some/model", None),
        ("small", "Qwen/Qwen3-8B", None),
    ],
)
def test_public_heads(kind, model, head):
    assert public_head(kind, model) == head
    with pytest.raises(UserError) as caught:
        shipped_head(kind, model, None)
    expected = f"task=train draft={kind}" if head is None else f"draft.path={head}"
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_of_several_the_last_by_name_is_the_default_and_all_go_by_their_names(
    tmp_path, monkeypatch
):
    card = {"draftmesh_draft": "eagle", "target": "mine"}
    for name, more in (("mine-a1", {}), ("mine-a3", {}), ("mine-b", {"draftmesh_draft": "medusa"})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(card | more))
    monkeypatch.setattr(shipped, "heads_folder", lambda: tmp_path)
    assert shipped_head("eagle", "mine", None) == tmp_path / "mine-a3"
    assert shipped_head("eagle", "mine", "mine-a1") == tmp_path / "mine-a1"


def test_a_folder_is_taken_as_it_is(tmp_path):
    assert shipped_head("eagle", "other", str(tmp_path)) == tmp_path


@pytest.mark.parametrize("path", ["nothing", "/no/such/folder", "../a/b"])
def test_what_is_neither_folder_nor_hub_id(path):
    with pytest.raises(UserError, match=r"draft\.path=.*: no such folder"):
        shipped_head("eagle", "other", path)


def test_a_hub_id_without_network(offline):
    with pytest.raises(UserError, match=r"draft\.path=org/head: .*Hub cannot be reached") as caught:
        shipped_head("eagle", "other", "org/head")
    assert "\n" not in str(caught.value)


def test_a_hub_id_from_the_cache(offline):
    repository = offline / "models--org--head"
    snapshot = repository / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123")
    (snapshot / "config.json").write_text("{}")
    assert shipped_head("eagle", "other", "org/head") == snapshot
