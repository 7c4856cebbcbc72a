import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import parents, path

from draftmesh.stages.model.masks import Masks, ancestors

CPU = torch.device("cpu")


@given(st.lists(parents(4, 4), min_size=1, max_size=4))
def test_ancestors_are_the_nodes_on_the_path(trees):
    found = ancestors(torch.tensor(trees))
    for row, tree in zip(found, trees, strict=True):
        for node in range(len(tree)):
            assert row[node].nonzero().flatten().tolist() == path(tree, node)


def test_a_long_chain_reaches_back_to_its_start():
    chain = torch.arange(-1, 39)[None]
    assert torch.equal(ancestors(chain)[0], torch.ones(40, 40).tril().bool())


@settings(max_examples=200)
@given(st.data())
def test_bias_is_open_where_a_token_may_look(data):
    rows = data.draw(st.integers(1, 3))
    trees = data.draw(st.lists(parents(5, 5), min_size=rows, max_size=rows))
    same = data.draw(st.booleans())
    committed = [data.draw(st.integers(0, 6)) for _ in range(rows)]
    if same:
        committed = [committed[0]] * rows
    offset = data.draw(st.integers(0, 4))
    window = data.draw(st.none() | st.integers(1, 12))
    whole = ancestors(torch.tensor(trees))
    columns = max(committed) + 5
    masks = Masks(
        torch.tensor(committed), whole.sum(-1) - 1, whole[:, offset:], columns, False, same
    )
    bias = masks.bias(window, torch.float64, CPU)
    for row in range(rows):
        for token in range(offset, 5):
            line = bias[row if len(bias) > 1 else 0, 0, token - offset]
            assert line.tolist() == slow_line(trees[row], token, committed[row], columns, window)


def slow_line(tree, token, committed, columns, window):
    """0 where the token's own sequence, prefix and path, may be seen; -inf elsewhere."""
    way = path(tree, token)
    slots = [*range(committed), *(committed + node for node in way)]
    seen = slots if window is None else slots[-window:]
    return [0.0 if column in seen else float("-inf") for column in range(columns)]


def test_plain_causal_forwards_need_no_mask_until_a_window_is_shorter():
    depth = torch.arange(4)[None]
    related = depth[:, :, None] >= depth[:, None]
    masks = Masks(torch.tensor([0]), depth, related, 4, True, True)
    assert masks.bias(None, torch.float64, CPU) is None
    assert masks.bias(4, torch.float64, CPU) is None
    assert masks.bias(2, torch.float64, CPU)[0, 0, 3].isinf().tolist() == [True, True, False, False]
    assert masks.windows == {None, 4, 2}


def test_layers_on_another_device_get_their_bias_there():
    whole = ancestors(torch.tensor([[-1, 0, 0]]))
    masks = Masks(torch.tensor([2]), whole.sum(-1) - 1, whole, 5, False, True)
    elsewhere = torch.device("meta")
    biases = [masks.bias(None, torch.float64, device, 2) for device in (elsewhere, CPU, elsewhere)]
    assert [bias.device for bias in biases] == [elsewhere, CPU, elsewhere]
    assert biases[0] is biases[2]
    assert biases[0].shape == biases[1].shape
