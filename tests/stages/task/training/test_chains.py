import torch

from draftmesh.stages.task.training.acceptance import Acceptance
from draftmesh.stages.task.training.batches import Batch
from draftmesh.stages.task.training.chains import count_chains
from draftmesh.stages.task.training.windows import Windows


def test_a_chain_ends_at_its_first_wrong_guess_and_with_the_answer():
    tokens = torch.zeros(2, 8, dtype=torch.long)
    prompt, lengths = torch.tensor([2, 3]), torch.tensor([8, 6])
    batch = Batch(tokens, torch.zeros(2, 8, 1, 1), prompt, lengths)
    windows = Windows.of(batch)
    hits = torch.tensor([[1, 1, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]], dtype=torch.bool)
    into = Acceptance(3)
    count_chains(hits, windows, ["a", "b"], into)
    # Six answer tokens leave guesses after the first five, three answer tokens after two.
    assert into.total["a"].tolist() == [5, 4, 3]
    assert into.right["a"].tolist() == [4, 2, 0]
    assert into.total["b"].tolist() == [2, 1, 0]
    assert into.right["b"].tolist() == [2, 1, 0]
