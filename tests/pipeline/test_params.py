from typing import Any

from draftmesh.pipeline.params import run_name, run_params

MESH = {"world_size": 4, "dp": 4, "tp": 1, "ep": 4, "etp": 1}


def config(**changes: Any) -> dict[str, Any]:
    kinds = ("verifier", "ffn", "parallel", "sampling", "data")
    cfg: dict[str, Any] = {kind: {"name": kind} for kind in kinds}
    cfg["engine"] = {"name": "native"}
    cfg |= {"model": {"name": "smollm2", "dtype": "auto"}, "task": {"name": "generate"}}
    cfg |= {"draft": {"name": "eagle", "k": 5}, "seed": 0, "batch_size": 8, "max_new_tokens": 64}
    return cfg | changes


def test_about_twenty_flat_parameters() -> None:
    params = run_params(config(), {"parallel": "ep4", "sampling": "greedy"}, MESH)
    assert 15 <= len(params) <= 30
    assert params["draft.k"] == 5
    assert params["parallel"] == "ep4"
    assert params["sampling"] == "greedy"
    assert params["ep"] == 4
    assert params["batch_size"] == 8
    assert all(isinstance(v, str | int | float | bool | None) for v in params.values())


def test_every_run_has_the_same_parameters() -> None:
    plain = config(draft={"name": "none"})
    assert run_params(plain, {}, MESH).keys() == run_params(config(), {}, MESH).keys()
    assert run_params(plain, {}, MESH)["draft.k"] == 0


def test_a_model_from_a_folder_or_the_hub_is_called_by_its_last_part() -> None:
    for path in ("Qwen/Qwen3-0.6B", "/models/Qwen3-0.6B", "models/Qwen3-0.6B/"):
        params = run_params(config(model={"name": "hf", "path": path}), {}, MESH)
        assert params["model"] == "Qwen3-0.6B"


def test_run_names() -> None:
    assert run_name(config(), {"parallel": "ep4"}) == "eagle-k5_ep4_s0"
    tree = {"name": "eagle", "k": 5, "shape": "dynamic", "nodes": 16}
    assert run_name(config(draft=tree), {"parallel": "tp2"}) == "eagle-k5-dynamic16_tp2_s0"
    for shape, name in (("chain", "eagle-k5_tp2_s0"), ("static", "eagle-k5-static_tp2_s0")):
        unset = tree | {"shape": shape, "nodes": None}
        assert run_name(config(draft=unset), {"parallel": "tp2"}) == name
    other = config(engine={"name": "transformers"})
    assert run_name(other, {"parallel": "single"}) == "transformers_eagle-k5_single_s0"
    assert run_name(config(draft={"name": "none"}, seed=3), {"parallel": "tp2"}) == "none_tp2_s3"
    bench = run_name(config(task={"name": "bench"}), {"parallel": "single"})
    assert bench == "bench_eagle-k5_single_s0"
