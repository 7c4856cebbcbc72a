import torch
from harness import requests, tiny

from draftmesh.registry import build
from draftmesh.registry.contracts.chance import Stream
from draftmesh.registry.contracts.draft import Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.stages.draft.picker import ChainPicker
from draftmesh.stages.parallel.ranks import Solo

VOCAB = 96
POSITIONS = torch.tensor([7, 4])


class Recorder:
    """Draws the largest, and remembers what it was asked for."""

    def __init__(self):
        self.asked = []

    def sample(self, probs, rows, positions, stream):
        self.asked.append((rows.tolist(), positions.tolist(), int(stream)))
        return probs.argmax(-1)


def picker(coupled=False, **sampling):
    setup = tiny("llama")
    sampler = build("sampling", {"name": "processors", **sampling}, VOCAB, VOCAB)
    context = DraftContext(setup.target, setup.checkpoint, sampler, Solo(), coupled)
    chance = Recorder()
    return ChainPicker(context, Rows(tuple(requests()[:2]), chance, 50, None)), chance


def logits(seed):
    return torch.randn(2, VOCAB, generator=torch.Generator().manual_seed(seed)).double()


def test_greedy_picks_are_certain():
    chain, chance = picker()
    chain.begin()
    picks = [chain.pick(logits(i), POSITIONS + i) for i in range(3)]
    proposal = chain.proposal(torch.tensor([2, 3]))
    assert proposal.q is None
    assert torch.equal(proposal.tokens, torch.stack(picks, 1))
    assert torch.equal(proposal.tokens[:, 1], logits(1).argmax(-1))
    assert proposal.parents.tolist() == [[-1, 0, 1]] * 2
    assert proposal.valid.tolist() == [[True, True, False], [True] * 3]
    assert chance.asked == []


def test_sampled_picks_keep_their_distribution():
    chain, chance = picker(temperature=0.5, top_k=4)
    chain.begin()
    for i in range(2):
        chain.pick(logits(i), POSITIONS + i)
    proposal = chain.proposal(torch.tensor([2, 2]))
    for i in range(2):
        best = logits(i).topk(4, -1)
        expected = torch.zeros(2, VOCAB, dtype=torch.float64)
        expected.scatter_(1, best.indices, (best.values / 0.5).softmax(-1))
        assert torch.allclose(proposal.q[:, i], expected)
    assert proposal.q_index.tolist() == [[0, 1]] * 2
    # Every node draws at the first position, from a stream of its own (see Stream).
    first = POSITIONS.tolist()
    assert chance.asked == [
        ([0, 1], first, int(Stream.DRAFT)),
        ([0, 1], first, int(Stream.DRAFT + 1)),
    ]


def test_coupled_picks_use_the_targets_noise_and_hide_their_distribution():
    chain, chance = picker(coupled=True, temperature=0.5)
    chain.begin()
    for i in range(2):
        chain.pick(logits(i), POSITIONS + i)
    assert chain.proposal(torch.tensor([2, 2])).q is None
    assert chance.asked == [
        ([0, 1], [7, 4], int(Stream.TARGET)),
        ([0, 1], [8, 5], int(Stream.TARGET)),
    ]


def observed(chain):
    """Prompts of 3 and 2 tokens, then a step that accepts one token in the first row."""
    nothing = torch.zeros(2, 3, dtype=torch.long)
    chain.observe(
        Step(
            torch.tensor([[10, 11, 12], [20, 21, 0]]),
            torch.tensor([3, 2]),
            nothing,
            {},
            torch.tensor([13, 22]),
        )
    )
    chain.observe(
        Step(
            torch.tensor([[13, 14, 0], [22, 0, 0]]),
            torch.tensor([2, 1]),
            nothing,
            {},
            torch.tensor([15, 23]),
        )
    )


def test_penalties_see_the_whole_sequence_and_the_draft_so_far():
    chain, _ = picker(no_repeat_ngram=2)
    observed(chain)
    chain.begin()
    flat = torch.zeros(2, VOCAB, dtype=torch.float64)
    flat[0, 15], flat[0, 30] = 3.0, 2.0
    flat[1, 20], flat[1, 31] = 3.0, 2.0
    assert chain.pick(flat, POSITIONS).tolist() == [15, 20]
    # 15 15 and 20 21 have been there now: the first row must not say 15 again, nor the second 21.
    flat[1, 20], flat[1, 21], flat[1, 32] = 0.0, 3.0, 2.5
    assert chain.pick(flat, POSITIONS + 1).tolist() == [30, 32]
    chain.begin()
    assert chain.pick(flat, POSITIONS).tolist() == [15, 21], "what was drafted before is forgotten"


def test_dropped_rows_take_their_history_along():
    chain, _ = picker(no_repeat_ngram=2)
    observed(chain)
    chain.drop(torch.tensor([1]))
    chain.begin()
    flat = torch.zeros(1, VOCAB, dtype=torch.float64)
    flat[0, 20] = 3.0
    assert chain.pick(flat, POSITIONS[1:]).tolist() == [20]
    flat[0, 21], flat[0, 40] = 4.0, 3.5
    assert chain.pick(flat, POSITIONS[1:] + 1).tolist() == [40]


def test_a_chain_ends_behind_the_token_that_makes_it_unlikely():
    chain, _ = picker()
    chain.least = 0.3
    chain.begin()
    sure, unsure = torch.zeros(VOCAB), torch.zeros(VOCAB)
    sure[5], unsure[7] = 9.0, 4.0  # .99 and .37 of the probability
    for lines in ([sure, sure], [sure, unsure], [unsure, sure], [sure, unsure]):
        assert not chain.sure or not chain.ended
        chain.pick(torch.stack(lines).double(), POSITIONS)
    assert chain.proposal(torch.tensor([4, 4])).valid.sum(1).tolist() == [4, 4]
    assert not chain.sure[-1][1]
    chain.pick(torch.stack([unsure, unsure]).double(), POSITIONS)
    assert chain.ended
    assert chain.proposal(torch.tensor([9, 9])).valid.sum(1).tolist() == [5, 4]
    assert chain.proposal(torch.tensor([2, 9])).valid.sum(1).tolist() == [2, 4]
    chain.begin()
    chain.pick(torch.stack([unsure, sure]).double(), POSITIONS)
    assert chain.sure[0].all()
    assert not picker()[0].ended
