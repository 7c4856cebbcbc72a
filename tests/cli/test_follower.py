import pytest

NODE_0 = ["parallel.nnodes=2"]
NODE_1 = ["parallel.nnodes=2", "parallel.node_rank=1"]
RANK_0 = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
RANK_1 = RANK_0 | {"RANK": "1"}


@pytest.mark.parametrize(
    "flags",
    [
        ["-m"],
        ["--multirun"],
        ["-cn", "other"],
        ["--config-name=other"],
        ["-cd", "folder"],
        ["--config-dir", "folder"],
        ["-cp", "folder"],
        ["--config-path", "folder"],
    ],
)
@pytest.mark.parametrize("options", [NODE_0, NODE_1, RANK_0, RANK_1])
def test_no_flags_where_followers_compose_the_same(call, pipeline, monkeypatch, flags, options):
    """Otherwise one process would wait for others that do something else."""
    if isinstance(options, dict):
        for name, value in options.items():
            monkeypatch.setenv(name, value)
    result = call(*(options if isinstance(options, list) else ()), *flags)
    assert result.code == 2
    assert result.err.startswith(f"draftmesh: {flags[0]}: no flags under torchrun or with par")
    assert len(result.err.splitlines()) == 1
    assert pipeline.calls == []


def test_one_node_may_be_named(call, pipeline):
    assert call("-m", "parallel.nnodes=1", "seed=1,2").code == 0
    assert len(pipeline.calls) == 2
