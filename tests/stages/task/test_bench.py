import csv
import io
import json

import pytest
from built import built

from draftmesh.registry import UserError
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.engine import Generation
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.stages.task import bench
from draftmesh.stages.task.bench import Bench, by_category


def generation(tokens, seconds, rounds=10, verify=0.5, draft=0.1, overhead=0.05):
    """One completion of `tokens` tokens in `seconds`."""
    request = Request("q", "", (1, 2), 0, 0, tokens)
    counters = Counters(
        steps=rounds,
        rounds=rounds,
        emitted=tokens - 1,
        verify_s=verify,
        draft_s=draft,
        overhead_s=overhead,
    )
    return Generation([Completion(request, list(range(tokens)))], counters, seconds)


def test_medians_of_repeats_by_hand():
    method = [generation(100, s) for s in (2.0, 1.0, 4.0)]
    plain = [generation(100, s, draft=0.0, overhead=0.02) for s in (4.0, 4.0, 4.0)]
    found = bench._metrics({"method": method, "plain": plain}, {4: 1.5})
    assert found["throughput_tok_s"] == 50
    assert (found["throughput_tok_s_min"], found["throughput_tok_s_max"]) == (25, 100)
    assert found["plain_throughput_tok_s"] == 25
    assert (found["speedup_min"], found["speedup_vs_plain"], found["speedup_max"]) == (1, 2, 4)
    assert found["decode_tok_s"] == pytest.approx(99 / 0.65)
    assert found["decode_speedup"] == pytest.approx(0.52 / 0.65)
    assert found["overhead_share"] == pytest.approx(0.05 / 0.5)
    assert found["verify_cost_4"] == 1.5


def test_the_middle_run_is_kept():
    runs = [generation(100, s) for s in (2.0, 1.0, 4.0)]
    assert bench._middle(runs) is runs[0]
    assert bench._middle(runs[:2]) is runs[0]
    assert bench._middle(runs[:1]) is runs[0]


def test_acceptance_by_category_leaves_the_prefill_out():
    def completion(category, lengths):
        request = Request("q", "", (1,), 0, 0, 9, category=category)
        return Completion(request, accept_lengths=lengths)

    found = by_category(
        [completion("maths", [1, 3, 2]), completion("maths", [1, 4]), completion(None, [1])]
    )
    assert found == {
        "all": {"prompts": 1, "mean_acceptance_length": 0},
        "maths": {"prompts": 2, "mean_acceptance_length": 3},
    }


def test_both_sides_are_measured_in_turn(tmp_path, monkeypatch):
    pipeline = built(tmp_path, "draft=ngram", "draft.min_match=1")
    order = []

    def record(name):
        decode = getattr(type(pipeline), name)

        def recording(self, engine, *arguments, **options):
            order.append("method" if engine is self.engine else "plain")
            return decode(self, engine, *arguments, **options)

        monkeypatch.setattr(type(pipeline), name, recording)

    record("generate")
    record("converse")
    result = Bench(Bench.Config(repeats=3, verify_nodes=[2, 4])).run(pipeline)
    assert order[:2] == ["method", "plain"]  # warm-up
    assert order[2:] == ["method", "plain", "plain", "method", "method", "plain"]
    assert result.comparable
    assert result.generation.counters.drafted
    assert not result.plain.counters.drafted
    rows = list(csv.DictReader(io.StringIO(result.documents["bench.csv"])))
    assert [(r["side"], r["repeat"]) for r in rows] == [
        (side, str(i)) for side in ("method", "plain") for i in range(3)
    ]
    document = json.loads(json.dumps(result.documents["bench.json"]))
    assert set(document["verify_cost"]) == {"2", "4"}
    assert {"verify_cost_2", "verify_cost_4", "speedup_vs_plain"} <= set(result.metrics)
    assert any("cost of verifying" in line for line in result.lines)
    assert len((tmp_path / "samples.jsonl").read_text().splitlines()) == 3


def test_without_the_baseline_there_is_no_speed_up(tmp_path):
    pipeline = built(tmp_path)
    result = Bench(Bench.Config(repeats=1, baseline=False, verify_nodes=[])).run(pipeline)
    assert result.plain is None
    assert "speedup_vs_plain" not in result.metrics
    assert not any(name.startswith("verify_cost") for name in result.metrics)


@pytest.mark.parametrize(
    ("overrides", "sizes"),
    [
        (["model.context=64"], {2, 32}),  # behind 32 tokens there is room for 32
        (["model=tiny_mamba", "draft=none"], set()),  # verifies nothing
    ],
)
def test_verify_costs_are_measured_where_they_can_be(tmp_path, overrides, sizes):
    pipeline = built(tmp_path, *overrides, "prompt=Hi")
    costs = Bench(Bench.Config(verify_nodes=[2, 32, 33]))._costs(pipeline)
    assert set(costs) == sizes


@pytest.mark.parametrize(
    ("options", "named"),
    [({"repeats": 0}, "task.repeats=0"), ({"verify_nodes": [0, 2]}, "task.verify_nodes")],
)
def test_impossible_options(options, named):
    with pytest.raises(UserError, match=named):
        Bench(Bench.Config(**options))
