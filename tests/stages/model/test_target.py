"""Forwards over slots, trees and parts of a model against transformers' own, whole sequences."""

import pytest
import torch
from harness import SPECULATIVE, own_attention, rerun, rerun_last, tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import parents, path

TOLERANCE = {"gemma2": 1e-4}
"""transformers' eager attention, the only one with a soft cap, computes its softmax in float32;
routers and some norms do everywhere, which the default allows for. A wrong mask does far more."""

PREFIXES = ([3, 14, 15, 92, 6, 53, 58, 9, 79, 32], [7], [23, 84, 62, 64, 33])


def close(arch, ours, theirs):
    difference = (ours.log_softmax(-1) - theirs.log_softmax(-1)).abs().max()
    return difference < TOLERANCE.get(arch, 1e-5)


def padded(lines):
    width = max(map(len, lines))
    return torch.tensor([[*line, *[1] * (width - len(line))] for line in lines])


def prefilled(target, lines, capacity=40):
    """A cache that holds sequences of different lengths, from one padded forward."""
    cache = target.new_cache(len(lines), capacity)
    lengths = torch.tensor([len(line) for line in lines])
    tokens = padded(lines)
    forward = target.forward(
        tokens,
        cache,
        valid=torch.arange(tokens.shape[1]) < lengths[:, None],
        logits_at=lengths[:, None] - 1,
    )
    cache.advance(lengths)
    return cache, forward.logits[:, 0]


@pytest.mark.parametrize("arch", SPECULATIVE)
@torch.inference_mode()
def test_prompts_of_different_lengths_then_chains(arch):
    target = tiny(arch).target
    cache, logits = prefilled(target, PREFIXES)
    assert close(arch, logits, rerun_last(target.model, PREFIXES))
    chain = torch.tensor([[5, 6, 7], [5, 6, 7], [9, 8, 7]])
    ours = target.forward(chain, cache).logits
    whole = [
        [*p, *line[: i + 1]]
        for p, line in zip(PREFIXES, chain.tolist(), strict=True)
        for i in range(3)
    ]
    assert close(arch, ours.flatten(0, 1), rerun_last(target.model, whole))


@pytest.mark.parametrize("arch", SPECULATIVE)
@settings(max_examples=6)
@given(data=st.data())
@torch.inference_mode()
def test_trees_accepted_paths_and_dropped_rows(arch, data):
    check_decoding(arch, data)


@settings(max_examples=80)
@given(data=st.data())
@torch.inference_mode()
def test_many_trees_with_a_window(data):
    check_decoding("mistral", data)


def check_decoding(arch, data):
    """Three rounds of: verify a random tree, whole or level by level, keep a random path."""
    target = tiny(arch).target
    lines = [list(line) for line in PREFIXES[: data.draw(st.integers(1, 3))]]
    cache, _ = prefilled(target, lines)
    for _ in range(3):
        rows, size = len(lines), data.draw(st.integers(1, 6))
        trees = [data.draw(parents(size, size)) for _ in range(rows)]
        nodes = [data.draw(st.lists(st.integers(2, 95), min_size=size, max_size=size))] * rows
        ours = verify(target, cache, nodes, trees, data.draw(st.integers(0, size - 1)))
        whole = [
            [*lines[row], *(nodes[row][n] for n in path(tree, node))]
            for row, tree in enumerate(trees)
            for node in range(size)
        ]
        assert close(arch, ours.flatten(0, 1), rerun_last(target.model, whole))
        kept = [path(tree, data.draw(st.integers(-1, size - 1))) for tree in trees]
        for row in range(rows):
            lines[row] += [nodes[row][node] for node in kept[row]]
        width = max(map(len, kept))
        cache.keep(
            torch.tensor([line + [-1] * (width - len(line)) for line in kept]).view(rows, width),
            torch.tensor([len(line) for line in kept]),
        )
        if rows > 1 and data.draw(st.booleans()):
            keep = data.draw(st.permutations(range(rows)))[: rows - 1]
            cache.select(torch.tensor(keep))
            lines = [lines[row] for row in keep]


def verify(target, cache, nodes, trees, cut):
    """Logits of all nodes, from one forward or from two that cut the tree at `cut`."""
    tokens, tree = torch.tensor(nodes), torch.tensor(trees)
    first = target.forward(tokens[:, : cut or None], cache, parents=tree[:, : cut or None]).logits
    if cut == 0:
        return first
    rest = target.forward(tokens[:, cut:], cache, parents=tree, offset=cut).logits
    return torch.cat([first, rest], 1)


@pytest.mark.parametrize("arch", [a for a in SPECULATIVE if a != "gpt2"])
@torch.inference_mode()
def test_stopping_at_a_layer_and_resuming_there_is_a_whole_forward(arch):
    target = tiny(arch).target
    tree, tokens = torch.tensor([[-1, 0, 0, 2]] * 3), torch.tensor([[5, 6, 7, 8]] * 3)
    cache, _ = prefilled(target, PREFIXES)
    whole = target.forward(tokens, cache, parents=tree, capture=(1, 2, 3))
    for layer in (1, 2):
        cache, _ = prefilled(target, PREFIXES)
        front = target.forward(tokens, cache, parents=tree, layers=range(layer))
        assert front.logits is None
        assert torch.allclose(front.hidden, whole.features[layer], atol=1e-5)
        back = target.forward(front.hidden, cache, parents=tree, layers=range(layer, 3))
        assert torch.allclose(back.logits, whole.logits, atol=1e-5)
    assert torch.equal(whole.features[3], whole.hidden)


@pytest.mark.parametrize("arch", ["llama", "gpt2", "gemma3", "gpt_neox"])
@torch.inference_mode()
def test_captured_features_are_the_inputs_of_the_layers(arch):
    target = tiny(arch).target
    cache = target.new_cache(1, 16)
    tokens = torch.tensor([PREFIXES[0]])
    ours = target.forward(tokens, cache, capture=(0, 1, 2, 3)).features
    with own_attention(target.model):
        theirs = target.model(tokens, output_hidden_states=True, use_cache=False).hidden_states
    for layer in range(4):
        assert torch.allclose(ours[layer], theirs[layer], atol=1e-6), layer
    assert torch.allclose(
        target.norm(target.forward(tokens, cache, layers=(0, 1)).hidden),
        target.norm(theirs[2]),
        atol=1e-6,
    )


@torch.inference_mode()
def test_left_out_layers_change_nothing_else():
    target = tiny("llama").target
    tokens = torch.tensor([PREFIXES[0]])
    before = target.forward(tokens, target.new_cache(1, 16)).logits
    skipped = target.forward(tokens, target.new_cache(1, 16), layers=(0, 2)).logits
    assert (before - skipped).abs().max() > 0.1
    assert torch.equal(target.forward(tokens, target.new_cache(1, 16)).logits, before)


@torch.inference_mode()
def test_an_error_inside_a_part_leaves_the_model_whole():
    target = tiny("llama").target
    tokens = torch.tensor([PREFIXES[0]])
    before = target.forward(tokens, target.new_cache(1, 16)).logits
    with pytest.raises(RuntimeError):
        target.forward(torch.zeros(1, 3, 7), target.new_cache(1, 16), layers=(0, 1))
    assert torch.equal(target.forward(tokens, target.new_cache(1, 16)).logits, before)


@pytest.mark.parametrize("arch", ["llama", "olmoe"])
@torch.inference_mode()
def test_what_is_in_the_padding_does_not_matter(arch):
    target = tiny(arch).target
    results = []
    for filler in (1, 77):
        lines = [line + [filler] * (10 - len(line)) for line in PREFIXES]
        cache = target.new_cache(3, 20)
        lengths = torch.tensor([10, 1, 5])
        valid = torch.arange(10) < lengths[:, None]
        first = target.forward(torch.tensor(lines), cache, valid=valid).logits
        cache.advance(lengths)
        second = target.forward(torch.tensor([[4, filler], [5, filler], [6, 7]]), cache).logits
        results.append((first[valid], second[:, 0]))
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@torch.inference_mode()
def test_logits_are_computed_only_where_asked():
    target = tiny("llama").target
    tokens = torch.tensor([PREFIXES[0], PREFIXES[0]])
    every = target.forward(tokens, target.new_cache(2, 16)).logits
    some = target.forward(
        tokens, target.new_cache(2, 16), logits_at=torch.tensor([[9, 0], [3, 3]])
    ).logits
    assert some.shape[:2] == (2, 2)
    assert torch.allclose(some[0], every[0, [9, 0]], atol=1e-12)
    assert torch.allclose(some[1], every[1, [3, 3]], atol=1e-12)


@pytest.mark.parametrize("arch", ["llama", "gpt2", "gpt_oss"])
@torch.inference_mode()
def test_the_last_position_of_the_context_works_beside_padding_past_it(arch):
    target = tiny(arch, context=32).target
    lines = [[(7 * i) % 90 + 2 for i in range(31)], [3, 4]]
    cache, _ = prefilled(target, lines)
    ours = target.forward(torch.tensor([[9, 1, 1], [5, 6, 7]]), cache).logits
    assert close(arch, ours[0, 0], rerun(target.model, [*lines[0], 9])[-1])
    assert close(arch, ours[1, 2], rerun(target.model, [3, 4, 5, 6, 7])[-1])


@torch.inference_mode()
def test_embedding_norm_and_head_are_those_of_the_model():
    target = tiny("gemma2").target
    tokens = torch.tensor([PREFIXES[0]])
    forward = target.forward(tokens, target.new_cache(1, 16), capture=(0, 3))
    assert torch.equal(target.embed(tokens), forward.features[0])
    assert torch.equal(target.lm_head(forward.hidden), forward.logits)
    assert forward.logits.abs().max() < 30  # final_logit_softcapping
