from draftmesh.stages.parallel.traffic import CONTROL, EXPERTS, TENSOR, Traffic


def test_counts_by_category() -> None:
    traffic = Traffic()
    for category, rows, sent in (
        (EXPERTS, 2, 16),
        (EXPERTS, 0, 8),
        (TENSOR, 1, 4),
        (CONTROL, 1, 1),
    ):
        with traffic.measure(category, rows, sent):
            pass
    assert (traffic.total(EXPERTS).calls, traffic.total(EXPERTS).rows) == (2, 2)
    assert traffic.total(EXPERTS).bytes == 24
    assert traffic.total().bytes == 28
    assert traffic.total(CONTROL).calls == 1
    assert traffic.total().seconds > 0
    traffic.reset()
    assert traffic.total(EXPERTS, TENSOR, CONTROL).calls == 0
