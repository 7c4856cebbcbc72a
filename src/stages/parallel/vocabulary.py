"""Embedding and LM head of which each rank holds part of the vocabulary."""

import torch
from torch import Tensor, nn

from draftmesh.stages.parallel.group import Group
from draftmesh.stages.parallel.traffic import TENSOR


class VocabularyPart:
    """Consecutive rows of a [V, H] table; every rank has equally many, the last ones padded."""

    def __init__(self, size: int, group: Group) -> None:
        self.size = size
        self.rows = -(-size // group.size)
        self.start = min(size, self.rows * group.index)
        self.end = min(size, self.start + self.rows)

    @torch.no_grad()
    def cut(self, table: Tensor) -> nn.Parameter:
        """This rank's rows of a table [V, ...], with zeros behind the last one."""
        part = table.new_zeros(self.rows, *table.shape[1:])
        part[: self.end - self.start] = table[self.start : self.end]
        return nn.Parameter(part, requires_grad=False)


class ShardedEmbedding(nn.Module):
    """Looks up the ids it holds; a sum over the group fills in the rest (exact: one term is not 0).

    The original module does the look-up, so that what a model adds to it (scaling) stays.
    """

    def __init__(self, inner: nn.Embedding, part: VocabularyPart, group: Group) -> None:
        super().__init__()
        self.inner = inner
        self.part = part
        self.group = group
        inner.padding_idx = None
        inner.weight = part.cut(inner.weight)
        inner.num_embeddings = part.rows

    @property
    def weight(self) -> Tensor:
        """This rank's rows [V / n, H]."""
        return self.inner.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens [...] -> [..., H]."""
        here = (tokens >= self.part.start) & (tokens < self.part.end)
        own = torch.where(here, tokens - self.part.start, 0)
        row, n = self.weight.shape[1] * self.weight.element_size(), self.group.size
        self.group.traffic.predict(TENSOR, 2 * (n - 1) * tokens.numel() * row // n)
        rows = self.inner(own).masked_fill(~here[..., None], 0)
        return self.group.all_reduce(rows, TENSOR)


class ShardedHead(nn.Module):
    """Logits of its part of the vocabulary, gathered from the group: [..., H] -> [..., V]."""

    def __init__(
        self, weight: nn.Parameter, bias: nn.Parameter | None, part: VocabularyPart, group: Group
    ) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias
        self.part = part
        self.group = group
        self.in_features, self.out_features = weight.shape[1], part.size

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden [..., H] -> logits [..., V]; the same on every rank of the group."""
        rows = hidden.numel() // self.in_features * self.part.rows * hidden.element_size()
        self.group.traffic.predict(TENSOR, (self.group.size - 1) * rows)
        local = nn.functional.linear(hidden, self.weight, self.bias)
        parts = self.group.all_gather(local, TENSOR)
        return parts.movedim(0, -2).flatten(-2)[..., : self.part.size]


def shard_vocabulary(model: nn.Module, group: Group) -> bool:
    """Replace a causal LM's embedding and LM head, tied ones staying tied; False if they are not a
    plain embedding and a plain linear layer of one vocabulary."""
    embedding = model.get_input_embeddings()  # type: ignore[operator]
    head = model.get_output_embeddings()  # type: ignore[operator]
    plain = isinstance(embedding, nn.Embedding) and type(head) is nn.Linear
    if not plain or len(embedding.weight) != len(head.weight):
        return False
    part = VocabularyPart(len(head.weight), group)
    tied = head.weight is embedding.weight
    bias = None if head.bias is None else part.cut(head.bias)
    cut = None if tied else part.cut(head.weight)
    sharded = ShardedEmbedding(embedding, part, group)
    model.set_input_embeddings(sharded)  # type: ignore[operator]
    weight = embedding.weight if cut is None else cut
    model.set_output_embeddings(ShardedHead(weight, bias, part, group))  # type: ignore[operator]
    return True
