import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftmesh.registry.contracts.sampling import History
from draftmesh.stages.sampling.history import node_histories

PAD = 99


@st.composite
def histories(draw: st.DrawFn) -> History:
    rows, nodes, width = draw(st.integers(1, 3)), draw(st.integers(0, 6)), draw(st.integers(1, 7))
    token = st.integers(0, 9)
    lengths = [draw(st.integers(1, width)) for _ in range(rows)]
    return History(
        torch.tensor([[draw(token) for _ in range(width)] for _ in range(rows)]),
        torch.tensor(lengths),
        torch.tensor([[draw(token) for _ in range(nodes)] for _ in range(rows)]).view(rows, nodes),
        torch.tensor([[draw(st.integers(-1, n - 1)) for n in range(nodes)] for _ in range(rows)])
        .view(rows, nodes)
        .long(),
        torch.tensor([draw(st.integers(0, length)) for length in lengths]),
    )


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_every_node_sees_its_own_path(history: History, data: st.DataObject) -> None:
    total = history.node_tokens.shape[1] + 1
    nodes = data.draw(st.integers(1, total))
    ids, written = node_histories(history, nodes, PAD)
    assert history.prompts is not None
    for row in range(len(history.tokens)):
        for index in range(nodes):
            path = history.path(row, total - nodes + index).tolist()
            line = ids[row, index].tolist()
            assert line == [PAD] * (len(line) - len(path)) + path
            after = path[int(history.prompts[row]) :]
            line = written[row, index].tolist()
            assert line == [PAD] * (len(line) - len(after)) + after


def test_without_a_prompt_length_everything_is_written() -> None:
    nothing = torch.empty(1, 0, dtype=torch.long)
    history = History(torch.tensor([[4, 5]]), torch.tensor([2]), nothing, nothing)
    ids, written = node_histories(history, 1, PAD)
    assert ids.tolist() == written.tolist() == [[[4, 5]]]
