"""Embedding matrices with more rows than the tokenizer has tokens."""

import pytest
import torch
from harness import PROMPTS, Setup, requests, rerun, run_engine, save_draft, tokens
from transformers import AutoTokenizer

from draftmesh.registry import UserError
from draftmesh.stages.model.bytetokenizer import byte_tokenizer
from draftmesh.stages.model.target import HFTarget
from draftmesh.stages.model.tiny import Tiny

WORDS, ROWS = 258, 264
SAMPLING = {"temperature": 0.8, "top_p": 0.95}


@pytest.fixture(scope="module")
def setup() -> Setup:
    """A model whose favourites are ids that its tokenizer does not have."""
    options = {"vocab_size": ROWS, "layers": 2, "hidden_size": 32, "dtype": "float64"}
    checkpoint = Tiny(Tiny.Config(**options)).load()
    assert len(checkpoint.tokenizer) == WORDS
    head = checkpoint.model.get_output_embeddings().weight
    head[WORDS:] = 3 * head[:6]
    found = Setup(checkpoint, HFTarget(checkpoint.model))
    favourite = rerun(checkpoint.model, PROMPTS[0])[-1].argmax()
    assert favourite >= WORDS
    return found


@pytest.mark.parametrize("sampling", [None, SAMPLING])
def test_ids_without_a_token_are_never_chosen(setup, sampling):
    result = tokens(run_engine(setup, requests(), sampling=sampling))
    assert max(map(max, result)) < WORDS
    if sampling is None:
        line = list(PROMPTS[0])
        for token in result[0]:
            assert token == int(rerun(setup.checkpoint.model, line)[-1, :WORDS].argmax())
            line.append(token)


@pytest.mark.parametrize("rows", [260, 264, 272])
@pytest.mark.parametrize("sampling", [None, SAMPLING])
@pytest.mark.parametrize("verifier", ["match", "ratio", "block"])
def test_draft_and_target_may_be_padded_differently(setup, tmp_path, rows, sampling, verifier):
    path = save_padded(tmp_path, setup, rows)
    draft = {"name": "small", "path": path, "k": 3, "confidence": 0}
    result = run_engine(setup, requests(), draft, verifier, sampling, batch_size=5)
    assert max(map(max, tokens(result))) < WORDS
    # The draft is the target, padding apart.
    assert result.counters.accepted == result.counters.drafted > 0
    if sampling is None or verifier == "match":
        assert tokens(result) == tokens(run_engine(setup, requests(), sampling=sampling))


def save_padded(folder, setup, rows):
    """The same model with another number of padding rows."""
    options = {"vocab_size": rows, "layers": 2, "hidden_size": 32, "dtype": "float64"}
    checkpoint = Tiny(Tiny.Config(**options)).load()
    state = setup.checkpoint.model.state_dict()
    own = checkpoint.model.state_dict()
    for name, tensor in state.items():
        if tensor.shape == own[name].shape:
            own[name].copy_(tensor)
        else:
            own[name].zero_()[:WORDS] = tensor[:WORDS]
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_draft_with_another_vocabulary_is_refused(setup, tmp_path):
    path = save_draft(tmp_path, vocab_size=200)
    with pytest.raises(UserError, match=r"draft\.path=.*58 ids differ, first 200") as caught:
        run_engine(setup, requests(), {"name": "small", "path": path})
    assert "\n" not in str(caught.value)


def test_equal_sizes_do_not_make_equal_vocabularies(setup, tmp_path):
    path = save_draft(tmp_path, vocab_size=ROWS)
    other = byte_tokenizer(WORDS)
    names = other.get_vocab()
    core = other.backend_tokenizer.to_str().replace(f'"a":{names["a"]},', f'"a":{names["b"]},', 1)
    core = core.replace(f'"b":{names["b"]}', f'"b":{names["a"]}')
    (tmp_path / "tokenizer.json").write_text(core)
    assert AutoTokenizer.from_pretrained(path).get_vocab()["a"] == names["b"]
    with pytest.raises(UserError, match="2 ids differ"):
        run_engine(setup, requests(), {"name": "small", "path": path})


def test_draft_logits_are_fitted_to_the_targets_vocabulary():
    from draftmesh.stages.draft.vocabulary import fit_vocabulary

    logits = torch.arange(4.0)[None]
    assert fit_vocabulary(logits, 3).tolist() == [[0, 1, 2]]
    assert fit_vocabulary(logits, 4) is logits or torch.equal(fit_vocabulary(logits, 4), logits)
    assert fit_vocabulary(logits, 6).tolist() == [[0, 1, 2, 3, -torch.inf, -torch.inf]]
