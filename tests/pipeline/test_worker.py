from built import composed

from draftmesh.pipeline.series import read_series
from draftmesh.pipeline.worker import Work, execute
from draftmesh.registry import REGISTRY
from draftmesh.registry.contracts.result import RunResult
from draftmesh.stages.parallel.ranks import Solo


def test_rank_0_reports_the_result_and_the_facts(tmp_path):
    report = execute(Work(composed("task.baseline=true"), tmp_path), Solo())
    assert len(report.result.generation.completions) == 3
    assert report.result.plain is not None
    facts = report.facts
    assert (facts["world_size"], facts["dp"], facts["tp"], facts["ep"], facts["etp"]) == (1,) * 5
    assert (facts["ffn"], facts["lossy"], facts["dtype"]) == ("dense", False, "float64")
    assert facts["device"] == "cpu"
    assert facts["total_params"] == facts["active_params"] > 0
    assert facts["peak_mem_mb"] > 0
    assert (facts["comm_calls"], facts["comm_bytes"], facts["predicted_comm_bytes"]) == (0, 0, 0)
    assert report.result.expert_load is None


def test_experts_are_in_the_report(tmp_path):
    cfg = composed("model=tiny_mixtral", "verifier=typical", "sampling=nucleus")
    report = execute(Work(cfg, tmp_path), Solo())
    assert (report.facts["ffn"], report.facts["lossy"]) == ("moe", True)
    assert report.facts["active_params"] < report.facts["total_params"]
    assert [len(layer) for layer in report.result.expert_load] == [8, 8, 8]


def test_meters_are_the_methods_own(tmp_path):
    """Whatever else a task decodes: plain decoding, further repeats, peers."""
    shared = ("model=tiny_mixtral", "draft=ngram", "draft.k=6", "draft.min_match=1")
    tasks = ("task=generate", "task.baseline=true", "task=bench", "draft=none")
    loads, facts = [], []
    for number, task in enumerate(tasks):
        cfg = composed(*shared[: 1 if task == "draft=none" else 4], task, "max_new_tokens=24")
        if task == "task=bench":
            cfg["task"] |= {"repeats": 2, "verify_nodes": [2]}
        (tmp_path / str(number)).mkdir()
        report = execute(Work(cfg, tmp_path / str(number)), Solo())
        loads.append(report.result.expert_load)
        facts.append(report.facts["unique_experts_per_forward"])
    assert loads[0] == loads[1] == loads[2] != loads[3]
    assert facts[0] == facts[1] == facts[2] != facts[3]


def test_metrics_over_time_go_to_the_tracker_or_to_a_file(tmp_path):
    with REGISTRY.isolated():
        REGISTRY.register("task", "talk")(Talk)
        cfg = composed() | {"task": {"name": "talk"}}
        execute(Work(cfg, tmp_path), Solo())
        assert list(read_series(tmp_path)) == [({"speed": 3.0}, 1)]
        seen = []
        execute(Work(cfg, tmp_path, lambda metrics, step: seen.append((metrics, step))), Solo())
        assert seen == [({"speed": 3.0}, 1)]


class Talk:
    """A task that only logs."""

    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Config:
        name: str = "talk"

    def __init__(self, config):
        pass

    def run(self, pipeline):
        pipeline.log_metrics({"speed": 3.0}, 1)
        return RunResult()
