import torch
from ranked_models import tiny, tokens

from draftmesh.registry import build
from draftmesh.stages.ffn.moe import MoE
from draftmesh.stages.ffn.report import MoeReport, summarise
from draftmesh.stages.parallel.placement import Placement
from draftmesh.stages.parallel.ranks import Solo


def mixtral() -> tuple[object, MoE]:
    model = tiny("mixtral")
    moe = build("ffn", {"name": "auto"}).apply(model, Solo()).moe
    assert moe is not None
    return model, moe


def test_padding_is_not_routed_and_comes_out_zero() -> None:
    model, moe = mixtral()
    ids = tokens(0, 2, 6)
    valid = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    seen: list[torch.Tensor] = []
    block = model.model.layers[0].mlp  # type: ignore[attr-defined]
    hook = block.register_forward_hook(lambda *event: seen.append(event[2]))
    moe.context.set_valid(valid)
    logits = model(ids).logits  # type: ignore[operator]
    assert torch.equal(seen[0][~valid], torch.zeros(4, 32, dtype=torch.float64))
    assert (seen[0][valid].abs().sum(-1) > 0).all()
    assert moe.load.counts.sum(1).tolist() == [16, 16]
    moe.context.set_valid(None)
    full = model(ids).logits  # type: ignore[operator]
    assert torch.allclose(logits[valid], full[valid], atol=1e-12)
    hook.remove()


def test_no_real_token_at_all() -> None:
    model, moe = mixtral()
    moe.context.set_valid(torch.zeros(2, 6, dtype=torch.bool))
    assert model(tokens(0, 2, 6)).logits.isfinite().all()  # type: ignore[operator]
    assert moe.load.counts.sum() == 0
    assert moe.load.hits == [0, 0]


def test_router_choices_are_kept_when_asked() -> None:
    model, moe = mixtral()
    model(tokens(0, 1, 4))  # type: ignore[operator]
    assert moe.load.choices == []
    moe.reset()
    moe.load.record = True
    model(tokens(0, 1, 4))  # type: ignore[operator]
    assert [(layer, tuple(ids.shape)) for layer, ids in moe.load.choices] == [
        (0, (4, 2)),
        (1, (4, 2)),
    ]
    counted = torch.stack([ids.reshape(-1).bincount(minlength=6) for _, ids in moe.load.choices])
    assert torch.equal(counted, moe.load.counts)
    moe.reset()
    assert moe.load.choices == []
    assert moe.load.counts.sum() == 0
    assert moe.report().dispatch_s == 0


def test_unique_experts_of_one_token() -> None:
    model, moe = mixtral()
    model(tokens(0, 1, 1))  # type: ignore[operator]
    summary = summarise([moe.report()], moe.placement)
    assert summary.unique_experts_per_forward == 2
    assert summary.expert_ms > 0
    assert moe.mesh.traffic.predicted() == 0


def report(load: list[list[int]] | None, hits: list[int]) -> MoeReport:
    return MoeReport(load, hits, 0.001, 0.002, 0.003)


def test_summary_of_several_ranks() -> None:
    placement = Placement((0, 0, 1, 1), 2)
    reports = [report([[3, 1, 0, 0]], [2, 0]), report([[0, 1, 1, 2]], [1, 0])]
    summary = summarise(reports, placement)
    assert summary.load == [[3, 2, 1, 2]]
    assert summary.expert_load_balance == 4 / 5
    assert summary.unique_experts_per_forward == 3
    assert (summary.dispatch_ms, summary.combine_ms) == (1, 3)
    alone = summarise([report([[3, 2, 1, 2]], [4])], Placement((0,) * 4, 1))
    assert alone.expert_load_balance == 2 / 3


def test_ranks_that_share_tokens_report_them_once() -> None:
    summary = summarise([report([[2, 2]], [2]), report(None, [0])], Placement((0, 1), 2))
    assert summary.load == [[2, 2]]
    assert summary.unique_experts_per_forward == 2
