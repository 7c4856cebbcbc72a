import pytest
from built import built

from draftmesh.stages.task.generate import WARM_UP_TOKENS, Generate


def run(folder, *overrides, **options):
    pipeline = built(folder, "draft=ngram", "draft.min_match=1", *overrides)
    return pipeline, Generate(Generate.Config(**options)).run(pipeline)


def test_every_prompt_is_completed(tmp_path):
    pipeline, result = run(tmp_path)
    done = result.generation.completions
    assert [c.request.index for c in done] == [0, 1, 2]
    assert [len(c.token_ids) for c in done] == [8, 8, 8]
    assert result.plain is None
    assert result.comparable
    assert not result.tree
    assert ["".join(parts) for parts in result.pieces] == [
        pipeline.checkpoint.tokenizer.decode(c.token_ids) for c in done
    ]
    assert len((tmp_path / "samples.jsonl").read_text().splitlines()) == 3


def test_the_baseline_decodes_plainly_and_gives_the_same_tokens(tmp_path):
    _, result = run(tmp_path, baseline=True)
    ours = [c.token_ids for c in result.generation.completions]
    assert [c.token_ids for c in result.plain.completions] == ours
    assert result.plain.counters.drafted == 0
    assert result.generation.counters.drafted > 0
    assert len((tmp_path / "samples.jsonl").read_text().splitlines()) == 3


def test_the_warm_up_is_a_batch_of_short_completions(tmp_path, monkeypatch):
    pipeline = built(tmp_path)
    seen = []
    generate = type(pipeline.engine).generate

    def recording(self, asked, *arguments):
        seen.append([r.max_new_tokens for r in asked])
        return generate(self, asked, *arguments)

    monkeypatch.setattr(type(pipeline.engine), "generate", recording)
    Generate(Generate.Config(baseline=True)).run(pipeline)
    short = [WARM_UP_TOKENS] * 2
    assert seen == [short, [8] * 3, short, [8] * 3]


@pytest.mark.parametrize(
    ("overrides", "comparable"),
    [
        ([], True),
        (["sampling=nucleus"], True),
        (["sampling=nucleus", "verifier=ratio"], False),
        (["verifier=ratio"], True),
        (["sampling=nucleus", "verifier=typical"], False),
    ],
)
def test_equality_is_claimed_only_where_it_must_hold(tmp_path, overrides, comparable):
    pipeline = built(tmp_path, *overrides)
    assert pipeline.comparable == comparable
