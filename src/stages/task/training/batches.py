"""Batches of cached chats, similar lengths together."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from draftmesh.stages.task.training.features import FeatureStore

GROUP = 4096


@dataclass(frozen=True)
class Batch:
    """Right-padded chats: tokens [B, S], features [B, S, C, H], prompt [B] and lengths [B]."""

    tokens: Tensor
    features: Tensor
    prompt: Tensor
    lengths: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same on a device."""
        return Batch(
            self.tokens.to(device),
            self.features.to(device),
            self.prompt.to(device),
            self.lengths.to(device),
        )


def load_batch(store: FeatureStore, indices: Sequence[int]) -> Batch:
    """Read chats from the store (which computes what it lacks) and pad them to the longest."""
    store.fill(indices)
    chats = [store.chats[i] for i in indices]
    longest = max(len(chat.ids) for chat in chats)
    tokens = torch.zeros(len(chats), longest, dtype=torch.long)
    features = torch.zeros(
        len(chats), longest, len(store.layers), store.hidden, dtype=torch.bfloat16
    )
    for row, (index, chat) in enumerate(zip(indices, chats, strict=True)):
        tokens[row, : len(chat.ids)] = torch.tensor(chat.ids)
        features[row, : len(chat.ids)] = store.read(index)
    return Batch(
        tokens,
        features,
        torch.tensor([chat.prompt for chat in chats]),
        torch.tensor([len(chat.ids) for chat in chats]),
    )


def plan(
    lengths: Sequence[tuple[int, int]], indices: Sequence[int], tokens: int, seed: int
) -> Iterator[list[int]]:
    """One epoch's batches of at most `tokens` padded tokens, in random order.

    lengths: (answer, whole) length per chat. Chats are shuffled, then sorted by length within large
    groups (the answer's, roughly, as it costs more, then the whole), so that batches are nearly
    rectangular and still differ between seeds.
    """
    chance = random.Random(seed)
    order = list(indices)
    chance.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), GROUP):
        group = sorted(
            order[start : start + GROUP], key=lambda i: (lengths[i][0] // 16, lengths[i][1])
        )
        batch: list[int] = []
        widest = 0
        for index in group:
            if batch and (len(batch) + 1) * max(widest, lengths[index][1]) > tokens:
                batches.append(batch)
                batch, widest = [], 0
            batch.append(index)
            widest = max(widest, lengths[index][1])
        batches.append(batch)
    chance.shuffle(batches)
    yield from batches
