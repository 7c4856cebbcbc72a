import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["draft=ngrm"], "draft=ngrm: no such option; did you mean ngram?; available: "),
        (["experiment=foo"], "experiment=foo: no such option"),
        (["draft.kk=3"], "draft.kk: no such option; did you mean draft.k?; options of draft: "),
        (["draft=self", "draft.exitlayer=3"], "did you mean draft.exit_layer?"),
        (["draft=none", "draft.k=3"], "draft.k: no such option; options of draft: name"),
        (
            ["-m", "draft=none,ngram", "draft.k=3"],
            "draft.k: no such option; options of draft=none: ",
        ),
        (
            ["-m", "draft=ngram,none", "draft.k=3"],
            "draft.k: no such option; options of draft=none: ",
        ),
        (["-m", "draft=ngram,none", "seed=1,2", "draft.kk=3"], "options of draft=ngram: name, k"),
        (["parallel={new:1}"], "parallel: new keys are given with a plus sign: +parallel=..."),
        (["drfat=none"], "drfat: no such option; did you mean draft?"),
        (["max_tokens=3"], "max_tokens: no such option; did you mean max_new_tokens?"),
        (["hydra.run.dri=x"], "hydra.run.dri: no such option; did you mean hydra.run.dir?"),
        (["draft=none,ngram"], "draft=none,ngram: several values need -m"),
        (["draft.k=[1"], "draft.k=[1: the value cannot be read; quote it: 'draft.k=\"[1\"'"),
        (["--draft=none"], "--draft=none: no such flag; options have no dashes: draft=none;"),
        (["-x"], "-x: no such flag"),
        (["draft=null"], "draft=null: each takes the name of an option"),
        (["draft"], "draft: options are given as option=value"),
        (["seed=${nope}"], "seed: Interpolation key 'nope' not found"),
        (["~foo"], "Could not delete from config. 'foo' does not exist."),
    ],
)
def test_one_line_that_names_the_option(call, pipeline, arguments, message):
    result = call(*arguments)
    assert result.code == 2
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert not pipeline.calls
