import torch

from draftmesh.stages.draft.eagle.suspects import suspects


def test_other_readings_of_a_version_3_head(target, make_head):
    head = make_head(3, capture=(1, 2, 4), own_embedding=True)
    config = head.config
    found = suspects(head, target)
    shifted = {cause: h.config.capture for cause, h in found.items() if "off by one" in cause}
    assert sorted(shifted.values()) == [(0, 1, 3), (2, 3, 5)]
    assert "layer ids off by one: it should read [0, 1, 3], not [1, 2, 4]" in shifted
    assert found["norm_before_residual should be true"].config.residual_normed
    assert not found["the LM head should read unnormed states"].config.head_normed
    assert not found["its own embed_tokens do not belong to it"].config.own_embedding
    assert head.config is config


def test_no_layer_past_the_ends(target, make_head):
    causes = " ".join(suspects(make_head(3, capture=(0, 2, 5)), target))
    assert "off by one" not in causes


def test_readings_share_the_tensors(target, make_head):
    head = make_head(3)
    for other in suspects(head, target).values():
        assert other.fc.weight is head.fc.weight
    assert other.fc.weight.data_ptr() == head.fc.weight.data_ptr()


def test_a_variant_computes_otherwise(target, make_head):
    head = make_head(3)
    other = suspects(head, target)["norm_before_residual should be true"]
    x = torch.ones(1, 2, 32, dtype=torch.float64)
    assert not torch.equal(head.enter(x, 2 * x).residual, other.enter(x, 2 * x).residual)


def test_version_1_has_its_tables_only(target, make_head):
    assert suspects(make_head(1), target) == {}
    assert list(suspects(make_head(1, own_lm_head=True), target)) == [
        "its own lm_head does not belong to it"
    ]
