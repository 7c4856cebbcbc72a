import logging
from dataclasses import replace

import pytest
import torch
from harness import own_attention, save_draft, tiny

from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft import selfcheck
from draftmesh.stages.draft.selfcheck import agreement, read, self_check
from draftmesh.stages.draft.small import SmallDraft
from draftmesh.stages.parallel.ranks import Solo
from draftmesh.stages.sampling.options import SamplingOptions
from draftmesh.stages.sampling.processors import Processors


@pytest.fixture
def context():
    setup = tiny(context=512)
    sampler = Processors(SamplingOptions(), setup.target.vocab_size)
    return DraftContext(setup.target, setup.checkpoint, sampler, Solo())


@pytest.fixture
def draft(context, tmp_path):
    """draft(noise, **options): the target itself, with noise on its LM head."""

    def make(noise=0.0, within=context, **options):
        path = save_draft(tmp_path / str(noise), noise, context=512)
        return SmallDraft(SmallDraft.Config(path=path, **options), within)

    return make


def test_the_target_itself_always_agrees(context, draft):
    assert agreement(draft(), read(context, ())) == 1.0


def test_agreement_falls_with_noise(context, draft):
    reading = read(context, ())
    little, much = (agreement(draft(noise), reading) for noise in (0.3, 30.0))
    assert 1 > little > much


def test_choices_are_those_of_the_model_alone(context):
    reading = read(context, (1,))
    with own_attention(context.target.model):
        logits = context.target.model(reading.ids[None]).logits[0]
    assert torch.equal(reading.choices, logits.argmax(-1))
    assert reading.features[1].shape == (1, len(reading.ids), 32)


@pytest.mark.parametrize(
    "options", [{"shape": "static", "widths": [2, 1]}, {"shape": "dynamic"}, {"k": 1}]
)
def test_the_shape_of_proposals_does_not_matter(context, draft, options):
    reading = read(context, ())
    assert agreement(draft(0.3, **options), reading) == agreement(draft(0.3), reading)


def test_sampling_does_not_matter(context, draft):
    warm = Processors(
        SamplingOptions(temperature=5.0, repetition_penalty=1.5), context.target.vocab_size
    )
    sampling = replace(context, sampler=warm, coupled=True)
    reading = read(context, ())
    assert agreement(draft(0.3, sampling), reading) == agreement(draft(0.3), reading)


def test_a_good_draft_says_nothing(draft, caplog):
    assert self_check(draft(), "draft.path=good", {}) == 1.0
    assert not caplog.records


def test_a_bad_draft_is_told_with_its_likely_cause(draft, caplog):
    others = {"ids off by one: not 2": draft(0.3), "norms": draft(31.0), "it is another": draft()}
    rate = self_check(draft(30.0), "draft.path=bad", others)
    (record,) = caplog.records
    text = record.getMessage()
    assert record.levelno == logging.WARNING
    assert text.startswith("draft.path=bad: ")
    assert f"{rate:.0%}" in text
    assert text.endswith("it is another (that gives 100%)")
    assert "\n" not in text


def test_without_a_better_reading_the_head_is_to_blame(draft, caplog):
    self_check(draft(30.0), "draft.path=bad", {"norms": draft(31.0)})
    (record,) = caplog.records
    assert "made for another model" in record.getMessage()
    assert "norms" not in record.getMessage()


def test_only_the_first_rank_speaks(context, draft, caplog):
    ranks = Solo()
    ranks.rank = 1
    second = replace(context, ranks=ranks)
    assert self_check(draft(30.0, second), "draft.path=bad", {}) < selfcheck.LEAST
    assert not caplog.records


def test_nothing_is_left_behind(draft, context):
    bad, before = draft(30.0), torch.get_rng_state()
    fields = dict(vars(bad))
    self_check(bad, "draft.path=bad", {"it is another": draft()})
    assert vars(bad) == fields
    assert torch.equal(before, torch.get_rng_state())


def test_no_tokenizer_no_check(context, draft):
    bad = draft(30.0)
    bad.context = replace(context, checkpoint=replace(context.checkpoint, tokenizer=None))
    assert self_check(bad, "draft.path=bad", {}) is None


def test_a_short_context_reads_less_or_nothing(context, draft):
    for size, expected in ((64, 64), (16, None)):
        setup = tiny(context=size)
        short = replace(context, target=setup.target, checkpoint=setup.checkpoint)
        reading = read(short, ())
        assert (None if reading is None else len(reading.ids)) == expected
