from dataclasses import dataclass
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from draftmesh.pipeline.options import run_options
from draftmesh.pipeline.validate import check_options
from draftmesh.registry import REGISTRY, UserError


def composed(*overrides: str) -> dict[str, Any]:
    with initialize_config_module("draftmesh.conf", version_base="1.3"):
        cfg: Any = OmegaConf.to_container(compose("config", list(overrides)), resolve=True)
    return cfg


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["draft=none", "parallel=ep4", "ffn=moe", "sampling=nucleus"],
        ["draft=self", "verifier=block", "parallel=ep4tp2", "threads=1"],
        ["draft=small", "verifier=typical", "stop=[a,b]", "parallel.ep=3"],
    ],
)
def test_good_configurations_pass(overrides):
    check_options(composed(*overrides))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("max_new_tokens=0", r"max_new_tokens=0: must be at least 1"),
        ("max_new_tokens=many", r"max_new_tokens: Value 'many' .* Integer"),
        ("batch_size=0", r"batch_size=0: must"),
        ("threads=0", r"threads=0: must"),
        ("seed=-1", r"seed=-1: must"),
        ("stop=['']", r"stop: an empty string"),
        ("stop=x", r"stop: "),
        ("prompt='  '", r"prompt: is empty"),
        ("+max_token=3", r"max_token: no such option; did you mean max_new_tokens\?"),
        ("debug=perhaps", r"debug: "),
        ("draft.k=0", r"draft\.k=0: must be at least 1; draft=none"),
        ("draft.k=-2", r"draft\.k=-2: must be at least 1"),
        ("draft.k=five", r"draft\.k: "),
        ("draft.k=2.5", r"draft\.k: "),
        ("+draft.kk=3", r"draft\.kk: no such option; did you mean draft\.k\?"),
        ("draft.name=ngrm", r"draft=ngrm: unknown; did you mean ngram\?"),
        ("~draft", r"draft: one option of the group is needed"),
        ("sampling.min_p=2", r"sampling\.min_p"),
        ("sampling.temperature=-0.1", r"sampling\.temperature=-0\.1"),
        ("sampling.top_p=0", r"sampling\.top_p=0"),
        ("sampling.top_p=1.1", r"sampling\.top_p=1\.1"),
        ("sampling.top_k=-1", r"sampling\.top_k=-1"),
        ("parallel.tp=0", r"parallel\.tp=0: must be at least 1"),
        ("parallel.dispatch=zzz", r"parallel\.dispatch=zzz: unknown; available: local"),
        ("parallel.compute=lop", r"parallel\.compute=lop: unknown; did you mean loop\?"),
        ("parallel.placement=zzz", r"parallel\.placement=zzz"),
        ("parallel.nnodes=2", r"parallel\.nnodes"),
        ("verifier.name=mach", r"verifier=mach: unknown; did you mean match\?"),
        ("+model.dtyp=float32", r"model\.dtyp: no such option; did you mean model\.dtype\?"),
    ],
)
def test_mistakes_name_the_option_in_one_line(override, message):
    cfg = composed(override)
    with pytest.raises(UserError, match=message) as error:
        check_options(cfg)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "overrides",
    [
        ["parallel.tp=4", "parallel.ep=6"],
        ["parallel.ep=2", "parallel.nnodes=3"],
        ["parallel.tp=4", "parallel.ep=3", "parallel.etp=1"],
        ["parallel=ep4", "ffn=dense"],
    ],
)
def test_impossible_plans(overrides):
    with pytest.raises(UserError, match=r"parallel\."):
        check_options(composed(*overrides))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.device=cuda:1"], r"model\.device=cuda:1: 2 ranks need a GPU each"),
        (["model=hf", "model.path=x", "model.device_map=auto"], r"model\.device_map=auto: .* 2 r"),
    ],
)
def test_ranks_choose_their_own_gpu(overrides, message):
    check_options(composed(*overrides))
    with pytest.raises(UserError, match=message) as error:
        check_options(composed(*overrides, "parallel=tp2"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model=tiny_mixtral"], r"parallel\.ep=9: the model has only 8 experts"),
        (["model=tiny_mixtral", "ffn.experts=9"], r"parallel\.ep=9: the model has only 8"),
        (["model=tiny_mixtral", "model.experts=9"], None),
        (["model=tiny_mixtral", "+model.extra.num_local_experts=9"], None),
        (["model=tiny_llama"], r"parallel\.ep=9 ranks but ffn\.experts=8: raise ffn\.experts"),
        (["model=tiny_llama", "ffn=moe", "ffn.experts=9"], None),
        (["ffn=moe"], r"parallel\.ep=9 ranks but ffn\.experts=8"),
        (["model=hf", "model.path=moe"], r"parallel\.ep=9: the model has only 4 experts"),
        (["model=hf", "model.path=nested"], r"parallel\.ep=9: the model has only 6 experts"),
        (["model=hf", "model.path=silent", "ffn=moe"], None),
        (["model=hf", "model.path=broken"], None),
        (["model=hf", "model.path=organisation/model"], None),
    ],
)
def test_more_ranks_than_experts(tmp_path, monkeypatch, overrides, message):
    monkeypatch.chdir(tmp_path)
    folders = {
        "moe": '{"n_routed_experts": 4}',
        "nested": '{"text_config": {"num_experts": 6}}',
        "silent": '{"num_experts": null}',
        "broken": "{",
    }
    for name, text in folders.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    check_options(composed(*overrides))
    if message is None:
        check_options(composed(*overrides, "parallel.ep=9"))
        return
    with pytest.raises(UserError, match=message) as error:
        check_options(composed(*overrides, "parallel.ep=9"))
    assert "\n" not in str(error.value)


class Bare:
    """A dispatcher without `replicated`."""

    @dataclass(frozen=True)
    class Config:
        name: str = "bare"

    def dispatch(self): ...
    def combine(self): ...
    def predicted_bytes(self): ...


def test_a_dispatcher_says_whether_its_tokens_are_replicated():
    with REGISTRY.isolated():
        REGISTRY.register("dispatch", "bare")(Bare)
        with pytest.raises(UserError, match=r"dispatch=bare: Bare lacks replicated"):
            check_options(composed("parallel.dispatch=bare"))


class Shaped:
    @dataclass(frozen=True)
    class Config:
        name: str = "shaped"
        k: int | str = "auto"
        shape: str = "dynamic"

    def start(self): ...
    def observe(self): ...
    def propose(self): ...
    def drop(self): ...
    def idle(self): ...


@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
@pytest.mark.parametrize("verifier", ["auto", "match", "typical", "ratio", "block"])
def test_biased_pairings_are_refused(shape, verifier):
    refused = {("static", "block"), ("dynamic", "ratio"), ("dynamic", "block")}
    with REGISTRY.isolated():
        REGISTRY.register("draft", "shaped")(Shaped)
        cfg = composed(f"verifier={verifier}")
        cfg["draft"] = {"name": "shaped", "shape": shape}
        if (shape, verifier) not in refused:
            check_options(cfg)
            return
        with pytest.raises(UserError, match=f"draft.shape={shape}: use verifier=match"):
            check_options(cfg)


STATIC = "draft.shape=static"


@pytest.mark.parametrize("draft", ["draft=small", "draft=self"])
@pytest.mark.parametrize("shape", ["chain", "static", "dynamic"])
@pytest.mark.parametrize("verifier", ["auto", "match", "typical", "ratio", "block"])
def test_biased_pairings_of_the_built_in_drafts_are_refused(draft, shape, verifier):
    refused = {("static", "block"), ("dynamic", "ratio"), ("dynamic", "block")}
    name = draft.removeprefix("draft=")
    nested = ["draft=cascade", f"draft.second={{name:{name},shape:{shape}}}"]
    for overrides, prefix in (([draft, f"draft.shape={shape}"], ""), (nested, "second.")):
        cfg = composed(f"verifier={verifier}", *overrides)
        if (shape, verifier) not in refused:
            check_options(cfg)
            continue
        with pytest.raises(UserError, match=rf"draft\.{prefix}shape={shape}: use verifier=match"):
            check_options(cfg)


@pytest.mark.parametrize(
    "overrides",
    [
        ["draft=ngram", "draft.k=auto"],
        ["draft=self", "draft.k=auto", "draft.shape=dynamic", "draft.nodes=24"],
        ["draft=self", "draft.k=auto", STATIC, "draft.widths=[1,1,1,1,1,1,1,1,1,1]"],
        ["draft=small", STATIC, "draft.paths=[[0],[1],[0,0]]", "verifier=ratio"],
        ["draft=cascade", "draft.k=auto"],
        ["draft=cascade", "draft.first=self", "draft.second={name:small,path:x,k:2}"],
    ],
)
def test_sizes_and_shapes_that_pass(overrides):
    check_options(composed(*overrides))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["draft=none", "+draft.k=auto"], r"draft\.k: no such option"),
        (["draft=self", "draft.nodes=0"], r"draft\.nodes=0: must be at least 1"),
        (["draft=self", "draft.shape=tree"], r"draft\.shape=tree: must be one of"),
        (["draft=self", "draft.widths=[2]"], r"draft\.widths: .* set draft\.shape=static"),
        (
            ["draft=self", STATIC, "draft.widths=[1,1,1,1]"],
            r"draft\.k=3: draft\.widths goes 4 deep",
        ),
        (["draft=self", STATIC, "draft.widths=[a]"], r"draft\.widths"),
        (["draft=self", STATIC, "draft.paths=[[0],[1,0]]"], r"draft\.paths: \[1, 0\] hangs below"),
        (["draft=cascade", "draft.k=0"], r"draft\.k=0: must be at least 1"),
        (["draft=cascade", "draft.first={name:ngram,k:0}"], r"draft\.first\.k=0: must be"),
        (["draft=cascade", "draft.second={name:self,kk:1}"], r"draft\.second\.kk: no such option"),
        (["draft=cascade", "draft.second={name:self,k:auto}"], r"draft\.second\.k: "),
        (["draft=cascade", "draft.second=sel"], r"draft=sel: unknown; did you mean self\?"),
        (["draft=cascade", "draft.second=[1]"], r"draft\.second: give a draft's name"),
    ],
)
def test_sizes_and_shapes_that_do_not(overrides, message):
    with pytest.raises(UserError, match=message) as error:
        check_options(composed(*overrides))
    assert "\n" not in str(error.value)


def test_run_options_keep_text_as_it_is():
    cfg = composed()
    cfg["prompt"] = "${not} \\${an} interpolation"
    assert run_options(cfg).prompt == cfg["prompt"]


def test_lengths_of_ngrams_fit_each_other():
    with pytest.raises(UserError, match=r"draft\.min_match"):
        check_options(composed("draft=ngram", "draft.min_match=9"))
