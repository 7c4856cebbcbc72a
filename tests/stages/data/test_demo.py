from draftmesh.stages.data.demo import Demo


def test_eight_varied_prompts():
    prompts = Demo(Demo.Config()).load()
    assert len({p.id for p in prompts}) == len({p.category for p in prompts}) == 8
    assert all(len(p.turns) == 1 for p in prompts)
    assert max(len(p.turns) for p in Demo(Demo.Config(turns="all")).load()) == 2


def test_a_limit():
    assert len(Demo(Demo.Config(limit=3)).load()) == 3


def test_a_file_of_your_own(tmp_path):
    (tmp_path / "mine.jsonl").write_text('{"prompt": "mine"}')
    (prompt,) = Demo(Demo.Config(path=str(tmp_path / "mine.jsonl"))).load()
    assert prompt.turns == ("mine",)
